"""Specifications: from tables that a client sent to a model, within limits."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

import streamgp as sgp
from streamgp.configuration import Config, from_tables
from streamgp.data.axes import Axis
from streamgp.data.quantities import wide_columns
from streamgp.data.wording import and_more
from streamgp.errors import ConfigurationError, DataError, FileError, StreamGPError, problem
from streamgp.service.reports import Bookkeeping, History
from streamgp.service.settings import Limits

_EVALUATIONS, _ROUNDS, _CLASSES, _NAME = 1000, 20, 64, 100


def made(tables: Mapping[str, Any], limits: Limits) -> sgp.ContinualGP:
    """Make a model without data.

    Args:
        tables: `channels`, `data`, and optionally `model` and `stream`, as in a TOML configuration.
        limits: How large a model may be.

    Returns:
        The model, with the tables in its bookkeeping.

    Raises:
        ConfigurationError: If something in them is unknown, or larger than allowed.
    """
    _check_tables(tables, limits)
    config = from_tables(tables)
    _check_data(config)
    model = config.build()
    check_size(model, limits)
    _check_settings(model, config.data.columns)
    blank = Bookkeeping.of(model)
    Bookkeeping(dict(tables), History(blank.history.names, blank.history.table)).put_into(model)
    model.to_bytes()  # what cannot be stored is refused now
    return model


def layout_of(model: sgp.ContinualGP) -> dict[str, Any]:
    """How the rows of a model's clients are to be read: the arguments of `update`."""
    data = Bookkeeping.of(model).specification.get("data", {})
    inputs = data.get("inputs", list(model.input_names) or None)
    return {"inputs": inputs, "channel": data.get("channel"), "value": data.get("value")}


def check_columns(model: sgp.ContinualGP, frame: pd.DataFrame) -> None:
    """Refuse rows with a column that is neither an input nor one of a channel.

    The library takes the only column of a frame for the only channel, whatever its name. Clients
    of a service name the channels, so that another name is a mistake. Rows of a long table name
    the channel themselves, and may have columns that nothing is learned from.

    Args:
        model: What is to learn the rows.
        frame: The rows.

    Raises:
        DataError: If there is such a column.
    """
    layout, channels = layout_of(model), model.likelihoods
    if layout["value"] is not None or layout["channel"] is not None or layout["inputs"] is None:
        return
    inputs = [layout["inputs"]] if isinstance(layout["inputs"], str) else layout["inputs"]
    usual = wide_columns(channels)
    short = next(iter(channels.values())).columns if len(channels) == 1 < len(usual) else ()
    unknown = [name for name in frame if name not in {*inputs, *usual, *short}]
    if unknown:
        raise DataError(
            problem(
                f"columns among the inputs {inputs} and the channels {usual}",
                and_more(repr(unknown[0]), len(unknown)),
                "Correct the name, or leave the column out.",
            )
        )


def learns_samples(model: sgp.ContinualGP) -> bool:
    """Whether rows are learned one at a time."""
    return bool(Bookkeeping.of(model).specification.get("stream", {}).get("samples", False))


def check_import(model: sgp.ContinualGP, limits: Limits) -> None:
    """Refuse a model from elsewhere that is too large, or whose bookkeeping is not ours.

    Raises:
        ConfigurationError: If it is too large.
        FileError: If what the service would keep in it is something else.
    """
    check_size(model, limits)
    try:
        kept = Bookkeeping.of(model)
        kept.check()
        if kept.specification:
            _check_data(from_tables(kept.specification))
    except Exception as error:  # a file may hold anything
        raise FileError(
            problem(
                "a model whose bookkeeping this service has written",
                f"another ({type(error).__name__}: {error})",
                "Load it with `streamgp.load`, and save it without.",
            )
        ) from error


def check_size(model: sgp.ContinualGP, limits: Limits) -> None:
    """Refuse a model that is larger than one may be."""
    _at_most(len(model.channels), limits.channels, "channels")
    for name, likelihood in model.likelihoods.items():
        _at_most(len(name), _NAME, f"letters in the name of channel {name[:20]!r}…")
        _at_most(likelihood.latents, _CLASSES, f"latent parameters of channel {name!r}")
        _at_most(likelihood.observation_dim, _CLASSES, f"numbers per row of channel {name!r}")
    updater = model._version.updater
    budget = updater.engines.budget
    if budget is not None:
        _at_most(budget, limits.inducing, "inducing points of a latent function")
    keep = updater.engines.keep
    if keep is None:
        raise ConfigurationError(
            problem(
                f'a number of rows for `keep`, at most {limits.keep:,}, or "auto"',
                "None, for all rows",
                "A service keeps bounded models.",
            )
        )
    if isinstance(keep, int):
        _at_most(keep, limits.keep, "rows that are kept")
    rule = updater.engines.settings.learning
    if rule is not None:
        _at_most(rule.rounds, _ROUNDS, "rounds of learning")
        _at_most(rule.evaluations, _EVALUATIONS, "evaluations of the bound per M step")
    if model.state is not None:
        _at_most(len(model.state.plain.kernels), limits.latents, "latent functions")


def _check_tables(tables: Mapping[str, Any], limits: Limits) -> None:
    """What has to be known before anything is made of the tables."""
    model = tables.get("model")
    latents = model.get("latents") if isinstance(model, dict) else None
    count = len(latents) if isinstance(latents, list) else latents
    if isinstance(count, int):
        _at_most(count, limits.latents, "latent functions")
    channels = tables.get("channels")
    if isinstance(channels, dict):
        _at_most(len(channels), limits.channels, "channels")
        for entry in channels.values():
            classes = entry.get("classes") if isinstance(entry, dict) else None
            if isinstance(classes, int):
                _at_most(classes, _CLASSES, "classes of a channel")


def _check_settings(model: sgp.ContinualGP, inputs: list[str]) -> None:
    """Refuse settings that only the first data would show to be wrong."""
    try:
        try:
            model._specification.prototype(tuple(inputs), tuple(Axis(name) for name in inputs))
        except ConfigurationError:  # a period such as "1D" asks for times
            axes = (Axis(inputs[0], 0), *(Axis(name) for name in inputs[1:]))
            model._specification.prototype(tuple(inputs), axes)
    except StreamGPError:
        raise
    except Exception as error:  # settings may be anything that JSON has
        raise ConfigurationError(
            problem(
                "settings that a model can begin with",
                f"{type(error).__name__}: {error}",
                "Correct the specification of the model.",
            )
        ) from error


def _check_data(config: Config) -> None:
    data = config.data
    names = [data.inputs] if isinstance(data.inputs, str) else data.inputs
    others = [name for name in (data.channel, data.value) if name is not None]
    fine = isinstance(names, list) and names and len({*map(str, names)}) == len(names)
    if not (fine and all(isinstance(name, str) and name for name in [*names, *others])):
        raise ConfigurationError(
            problem(
                "names of columns in `data`: `inputs`, and for long tables `channel` and `value`",
                f"{data}",
                "Name the columns of the rows that will come.",
            )
        )
    if data.format is not None or data.on_error is not None:
        raise ConfigurationError(
            problem(
                "`inputs`, `channel` and `value` in `data`",
                "`format` or `on_error`, which are for `streamgp run`",
                "Send dates in ISO 8601. A batch with a row that cannot be used is refused.",
            )
        )
    _at_most(len(names), 64, "input columns")
    if type(config.stream.samples) is not bool:
        raise ConfigurationError(
            problem("true or false for `samples`", repr(config.stream.samples), "Correct it.")
        )


def _at_most(number: int, most: int, what: str) -> None:
    if number > most:
        raise ConfigurationError(
            problem(f"at most {most} {what}", f"{number}", "Ask the operator for a higher limit.")
        )
