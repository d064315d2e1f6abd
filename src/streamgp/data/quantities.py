"""Quantities: the columns that the observations of a channel come in.

An observation may be one number, or several: a count and its exposure, a value and its weight, the
counts of several classes. A likelihood names them (`Likelihood.columns`). The values come first;
what else is known of an observation follows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamgp.data import columns, frames
from streamgp.data.wording import and_more, counted
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood

# Columns by name, or in the order of the likelihood's.
Given = Mapping[str, Any] | list[Any]


def value_count(likelihood: Likelihood) -> int:
    """How many of the numbers of an observation are what is predicted. They come first."""
    return likelihood.bare.observation_dim


def label(what: str, likelihood: Likelihood, column: str) -> str:
    """What the numbers of one column are, for a message."""
    return what if likelihood.observation_dim == 1 else f"{what} ({column})"


# -- arrays, dictionaries and frames of one channel ----------------------------------------------


def of_channel(values: Any, likelihood: Likelihood, rows: int, what: str) -> tuple[Any, ...]:
    """The columns of a channel's observations, as they were given.

    Args:
        values: A series, an array (N,) or (N, C), a list, a frame, or a dictionary of columns.
        likelihood: The likelihood of the channel.
        rows: How many rows the inputs have.
        what: What the observations are, for a message.

    Returns:
        One column for each of the likelihood's.

    Raises:
        DataError: If there are more or fewer columns.
    """
    width = likelihood.observation_dim
    is_plain = not isinstance(values, Mapping) and not frames.is_frame(values)
    if is_plain and not columns.is_series(values):
        values = np.atleast_1d(columns.as_array(values, what))
        if rows == 1 and width > 1 and values.shape == (width,):  # one observation
            values = values[None]
    given = separated(values, what)
    if isinstance(given, Mapping):
        check_known(given, likelihood.columns, what)
        return by_name(given, likelihood, what)
    if len(given) != width:
        shape = np.shape(values) if is_plain else (rows, len(given))
        raise _wrong_shape(shape, likelihood, rows, what)
    return tuple(given)


def separated(values: Any, what: str) -> Given:
    """Observations as columns: by name from a dictionary or a frame, else in order."""
    if isinstance(values, Mapping):
        return values
    if frames.is_frame(values):
        names = frames.names(values)
        picked = {name: frames.pick(values, name) for name in names}
        is_numbered = len(names) == 1 or names == list(range(len(names)))
        return list(picked.values()) if is_numbered else picked
    if columns.is_series(values):
        return [values]
    array = np.atleast_1d(columns.as_array(values, what))
    return list(array.T) if array.ndim == 2 else [array]


def by_name(given: Mapping[str, Any], likelihood: Likelihood, what: str) -> tuple[Any, ...]:
    """The likelihood's columns among those given by name."""
    missing = [name for name in likelihood.columns if name not in given]
    if missing:
        raise DataError(
            problem(
                f"the columns {list(likelihood.columns)} of {what}",
                f"no {missing[0]!r} among {list(given)}",
                "Give each of them.",
            )
        )
    return tuple(given[name] for name in likelihood.columns)


def check_known(given: Iterable[Any], known: Sequence[str], what: str) -> None:
    """Raise where a column has a name that no likelihood has."""
    unknown = [name for name in given if name not in known]
    if unknown:
        raise DataError(
            problem(
                f"columns among {list(known)} in {what}",
                and_more(repr(unknown[0]), len(unknown)),
                "Leave it out, or check its name.",
            )
        )


def _wrong_shape(shape: tuple[int, ...], likelihood: Likelihood, rows: int, what: str) -> DataError:
    width = likelihood.observation_dim
    if width == 1:
        return DataError(
            problem(
                f"{counted(rows, 'observation')}, one per row of the inputs, as {what}",
                f"shape {shape}",
                "Give one observation for each row of the inputs.",
            )
        )
    names = list(likelihood.columns)
    size = f"{counted(rows, 'observation')} of {width} numbers each"
    return DataError(
        problem(
            f"{size}, {', '.join(names)}, as {what}",
            f"shape {shape}",
            f"Give an array of shape ({rows}, {width}), or a dictionary with the keys {names}.",
        )
    )


# -- columns that rows of several channels share -------------------------------------------------


def of_rows(
    given: Given, rows: np.ndarray, likelihood: Likelihood, known: Sequence[str], what: str
) -> tuple[Any, ...]:
    """The columns of one channel's rows, where those of several channels come together.

    Args:
        given: The columns of all rows.
        rows: Which rows are the channel's.
        likelihood: The likelihood of the channel.
        known: The columns of all likelihoods.
        what: What the observations are, for a message.

    Returns:
        One column for each of the likelihood's. In order, a channel takes the first ones; in the
        others its rows must be empty.

    Raises:
        DataError: If a column is missing, or is not empty that should be.
    """
    if isinstance(given, Mapping):
        check_known(given, known, what)
        return tuple(columns.take(part, rows) for part in by_name(given, likelihood, what))
    width = likelihood.observation_dim
    if len(given) < width:
        raise _wrong_shape((len(rows), len(given)), likelihood, len(rows), what)
    own = [columns.take(part, rows) for part in given]
    for number, part in enumerate(own[width:], start=width):
        present = np.flatnonzero(~columns.read(part, what).missing)
        if len(present):
            raise DataError(
                problem(
                    f"{width} of the {len(given)} columns filled in for {what}, whose likelihood "
                    f"has {', '.join(likelihood.columns)}",
                    f"a value in column {number} as well, in row {rows[present[0]]}",
                    "Leave that one empty in these rows, or name the columns in a dictionary.",
                )
            )
    return tuple(own[:width])


# -- columns of a wide frame ---------------------------------------------------------------------


def in_wide_frame(
    channels: Mapping[str, Likelihood], present: Sequence[Any], chosen: Any
) -> dict[str, tuple[Any, ...]]:
    """The columns of a wide frame that each channel has, if it has any.

    Args:
        channels: The likelihood of each channel, by name.
        present: The columns of the frame that are not inputs.
        chosen: The columns that the user named, by channel, or None.

    Returns:
        The names of the columns in the order of the likelihood's, by channel.

    Raises:
        DataError: If a channel has some of its columns, or a column has no channel.
    """
    named = _chosen(channels, chosen)
    found: dict[str, tuple[Any, ...]] = dict(named)
    is_alone = len(channels) == 1
    for channel, likelihood in channels.items():
        if channel in named:
            continue
        if is_alone and likelihood.observation_dim == len(present) == 1:
            return {channel: (present[0],)}  # one column for one channel, whatever its name
        options = [_names(channel, likelihood, k, is_alone) for k in range(len(likelihood.columns))]
        picked = [next((name for name in own if name in present), None) for own in options]
        if all(name is None for name in picked):
            continue
        if None in picked:
            usual = [own[0] for own in options]
            raise DataError(
                problem(
                    f"the columns {usual} for channel {channel!r}",
                    f"no {usual[picked.index(None)]!r}",
                    f"Add it, or say which it is with `columns={{{channel!r}: {usual}}}`.",
                )
            )
        found[channel] = tuple(picked)
    _check_wide(channels, found, present, named)
    return found


def wide_columns(channels: Mapping[str, Likelihood]) -> list[str]:
    """The columns of a wide frame that has all channels."""
    return [
        _names(channel, likelihood, k, is_alone=False)[0]
        for channel, likelihood in channels.items()
        for k in range(likelihood.observation_dim)
    ]


def _names(channel: str, likelihood: Likelihood, index: int, is_alone: bool) -> list[str]:
    """What column a number of an observation may be in."""
    column = likelihood.columns[index]
    is_the_value = index == 0 and value_count(likelihood) == 1
    usual = channel if is_the_value else f"{channel}_{column}"
    return [usual, column] if is_alone and likelihood.observation_dim > 1 else [usual]


def _chosen(channels: Mapping[str, Likelihood], chosen: Any) -> dict[str, tuple[Any, ...]]:
    """The columns that the user named."""
    if chosen is None:
        return {}
    if not isinstance(chosen, Mapping) or any(name not in channels for name in chosen):
        raise DataError(
            problem(
                f"`columns=` as a dictionary by channel, among {list(channels)}",
                repr(chosen),
                'Write `columns={"visits": ["n", "hours"]}`, with the names of your columns.',
            )
        )
    named = {}
    for channel, given in chosen.items():
        likelihood = channels[channel]
        if isinstance(given, Mapping):
            check_known(given, likelihood.columns, f"`columns=` of channel {channel!r}")
            given = by_name(given, likelihood, f"`columns=` of channel {channel!r}")
        names = tuple(given) if isinstance(given, list | tuple) else (given,)
        if len(names) != likelihood.observation_dim:
            raise DataError(
                problem(
                    f"a column for each of {list(likelihood.columns)} of channel {channel!r}",
                    repr(given),
                    "Name one column of the frame for each, in that order.",
                )
            )
        named[channel] = names
    return named


def _check_wide(
    channels: Mapping[str, Likelihood],
    found: Mapping[str, tuple[Any, ...]],
    present: Sequence[Any],
    named: Mapping[str, Any],
) -> None:
    used = [name for names in found.values() for name in names]
    unknown = [name for name in present if name not in used]
    if unknown:
        expected = f"columns among the channels {list(channels)}"
        if any(likelihood.observation_dim > 1 for likelihood in channels.values()):
            expected = f"columns among {wide_columns(channels)}, as the channels have"
        raise DataError(
            problem(
                expected,
                and_more(repr(unknown[0]), len(unknown)),
                "Drop it, or add it first with `add_channel`. If each row of the frame is one "
                "observation, name the columns that say what it is: `channel=` and `value=`.",
            )
        )
    by_default = [name for c, names in found.items() if c not in named for name in names]
    twice = [name for name in by_default if used.count(name) > 1]
    if twice:
        owners = [channel for channel, names in found.items() if twice[0] in names]
        raise DataError(
            problem(
                "a column for each number of each channel",
                f"{twice[0]!r}, which would be of {' and of '.join(map(repr, owners))}",
                "Say which columns are meant with `columns={channel: [names]}`.",
            )
        )
