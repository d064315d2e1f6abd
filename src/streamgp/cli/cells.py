"""Cells: from what is written in a table to numbers, dates and labels, and the rows that fail.

What a column holds is decided once, by the first cell that can be read, and kept with the model.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from streamgp.cli import dates
from streamgp.cli.tables import Bad, Piece, cell_text
from streamgp.configuration import Data
from streamgp.data.axes import Axis, input_names
from streamgp.data.columns import LARGEST, is_usable
from streamgp.data.observations import family_name
from streamgp.data.quantities import in_wide_frame, value_count
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood, class_count

NUMBER, TIME, ZONED, BOOLEAN, LABEL = "number", "time", "zoned", "boolean", "label"
_NAMES = {
    NUMBER: "a number",
    TIME: f"{dates.ISO} without a time zone,",
    ZONED: f"{dates.ISO} with its offset from UTC,",
}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}

Rows = Int[np.ndarray, " n"]


class Reading:
    """Reads the cells of tables, and remembers what each column holds.

    Args:
        data: Which columns the tables have, and how dates are written.
        channels: The likelihood of each channel, by name; empty if only inputs are read.
        kinds: What columns are known to hold, by name.
        required: Further columns in which every row needs a value.
        labels: The labels of a channel's classes that are known so far; None if nobody counts them.

    Attributes:
        kinds: What columns are known to hold, by name.
    """

    def __init__(
        self,
        data: Data,
        channels: Mapping[str, Likelihood],
        kinds: Mapping[str, str],
        *,
        required: Sequence[str] = (),
        labels: Callable[[str], Sequence[Any]] | None = None,
    ):
        self._data, self._channels, self._required = data, channels, required
        self._labels = labels
        self.kinds = dict(kinds)

    def read(self, piece: Piece) -> tuple[pd.DataFrame, list[Bad]]:
        """The rows of a piece that can be used, and what is wrong with the others.

        Raises:
            DataError: If the table lacks a column, or has one that no channel has.
        """
        needed = [*self._required, *self._data.columns]
        if self._channels:
            needed += [name for name in (self._data.channel, self._data.value) if name is not None]
        found = _Found(piece, needed)
        if len(found.frame):
            for name in self._required:
                found.check_present(name, found.frame[name])
            for name in self._data.columns:
                self._read_input(found, name)
            if self._channels and self._data.value is not None:
                self._read_long(found, self._data.value)
            elif self._channels:
                self._read_wide(found)
        bad = [each for _, each in sorted(found.bad.items())]
        return found.without_bad(), sorted([*piece.broken, *bad], key=_order)

    # -- inputs ----------------------------------------------------------------------------------

    def _read_input(self, found: "_Found", name: str) -> None:
        cells = found.frame[name]
        found.check_present(name, cells)
        if pd.api.types.is_datetime64_any_dtype(cells):
            self.kinds.setdefault(name, TIME if cells.dt.tz is None else ZONED)
        elif name in self._data.formats:
            self._read_formatted(found, name, cells, self._data.formats[name])
        elif pd.api.types.is_numeric_dtype(cells) and self.kinds.get(name, NUMBER) == NUMBER:
            if cells.notna().any():
                self.kinds[name] = NUMBER
            found.check_size(name, cells, np.arange(len(cells)))
        else:
            self._read_text(found, name, cells)

    def _read_formatted(self, found: "_Found", name: str, cells: pd.Series, form: str) -> None:
        read = dates.formatted([_written(cell) for cell in cells], form)
        self.kinds[name] = ZONED if dates.names_zone(form) else TIME
        bad = read.isna().to_numpy() & cells.notna().to_numpy()
        remedy = "Correct it, or the `format` in [data]."
        found.add(np.flatnonzero(bad), name, f"a date of the form {form!r}", remedy)
        found.replace(name, read)

    def _read_text(self, found: "_Found", name: str, cells: pd.Series) -> None:
        known = self.kinds.get(name)
        whole = dates.iso(cells)
        if whole is not None and known in (None, kind := _kind_of(whole)):
            self.kinds[name] = kind
            found.replace(name, whole)
            return
        texts = [_written(cell) for cell in cells]
        read = dates.iso_each(texts)
        numbers = _as_numbers(cells)
        is_date = read.notna().to_numpy()
        kinds = np.full(len(cells), "", object)
        kinds[~np.isnan(numbers)] = NUMBER
        kinds[is_date] = [
            ZONED if dates.has_offset(text) else TIME for text in np.asarray(texts)[is_date]
        ]
        kind = known or next(filter(None, kinds.tolist()), "")
        bad = (kinds != kind if kind else kinds == "") & cells.notna().to_numpy()
        remedy = "Correct it."
        if kind != NUMBER and bad.any():
            remedy = dates.remedy([text for text in texts if text is not None], name)
        expected = _NAMES.get(kind, f"a number or {dates.ISO}")
        found.add(np.flatnonzero(bad), name, expected, remedy)
        if kind:
            self.kinds[name] = kind
        if kind == NUMBER:
            found.check_size(name, numbers, np.flatnonzero(~bad))
            found.replace(name, numbers)
        else:
            found.replace(name, read if kind == ZONED else read.dt.tz_localize(None))

    # -- observations ----------------------------------------------------------------------------

    def _read_wide(self, found: "_Found") -> None:
        columns = self._columns(found)
        every = np.arange(len(found.frame))
        for channel, names in columns.items():
            read = self._read_channel(found, channel, names, every)
            for name, values in zip(names, read, strict=True):
                if values is not None:
                    found.replace(name, values)

    def _columns(self, found: "_Found") -> dict[str, tuple[Any, ...]]:
        """The columns of each channel. Rows that name others are bad, if they name their own."""
        taken = {*self._required, *self._data.columns}
        others = [name for name in found.frame if name not in taken]
        try:
            return in_wide_frame(self._channels, others, None) if others else {}
        except DataError:
            if found.piece.has_header:
                raise
        present = found.frame[others].notna().to_numpy()
        for named in np.unique(present, axis=0):
            own = [name for name, is_there in zip(others, named, strict=True) if is_there]
            try:
                in_wide_frame(self._channels, own, None)
            except DataError as error:
                rows = np.flatnonzero((present == named).all(axis=1))
                shown = error.args[0]
                found.add_rows(rows, shown.expected, shown.got, shown.remedy)
        good = found.is_good()
        others = [n for n, seen in zip(others, present[good].any(axis=0), strict=True) if seen]
        found.frame = found.frame[[n for n in found.frame if n in taken or n in others]]
        return in_wide_frame(self._channels, others, None) if others else {}

    def _read_long(self, found: "_Found", value: str) -> None:
        name = self._data.channel
        channels = list(self._channels)
        if name is None and len(channels) > 1:
            return  # the model says what is missing
        names = np.full(len(found.frame), channels[0], object)
        if name is not None:
            found.check_present(name, found.frame[name])
            names = np.array([_written(cell) for cell in found.frame[name]], object)
            known = np.isin(names.astype(str), channels) | found.frame[name].isna().to_numpy()
            found.add(np.flatnonzero(~known), name, f"a channel among {channels}")
            found.replace(name, names)
        whole: Any = None
        for channel in channels:
            rows = np.flatnonzero(names == channel)
            read = self._read_channel(found, channel, [value], rows)[0] if len(rows) else None
            if read is not None:
                if whole is None:
                    whole = found.frame[value].astype(object).to_numpy(copy=True)
                whole[rows] = read
        if whole is not None:
            found.replace(value, pd.Series(whole, dtype=object).infer_objects())

    def _read_channel(
        self, found: "_Found", channel: str, columns: Sequence[Any], rows: Rows
    ) -> list[Any]:
        """The values of a channel in some rows, by column; None where a column stays as it is."""
        likelihood = self._channels[channel]
        values: list[Float[np.ndarray, " n"]] = []
        changed: list[Any] = []
        for position, name in enumerate(columns):
            cells = (
                found.frame[name] if len(rows) == len(found.frame) else found.frame[name].iloc[rows]
            )
            if position == 0 and class_count(likelihood):
                numbers, new = self._read_classes(found, channel, name, cells, rows)
            else:
                numbers, new = _numbers(found, name, cells, rows)
            values.append(numbers)
            changed.append(new)
        y = np.stack(values, axis=1)
        seen = self._check_whole(found, likelihood, columns, np.isnan(y), rows)
        usable = seen & is_usable(y).all(axis=1)
        if (usable != seen).any():
            for name, numbers in zip(columns, values, strict=True):
                found.check_size(name, numbers, np.flatnonzero(seen), rows)
        if usable.any():
            fit = likelihood.valid(y[usable, 0] if y.shape[1] == 1 else y[usable])
            found.add(
                rows[usable][~fit],
                columns[0],
                f"a value in the support of {family_name(likelihood)}",
            )
        return changed

    def _check_whole(
        self,
        found: "_Found",
        likelihood: Likelihood,
        columns: Sequence[Any],
        missing: Bool[np.ndarray, "n C"],
        rows: Rows,
    ) -> Bool[np.ndarray, " n"]:
        """Which rows have an observation; one that lacks some of its numbers is bad."""
        seen = ~np.all(missing[:, : value_count(likelihood)], axis=1)
        for name, gone in zip(columns, missing.T, strict=True):
            partly = rows[seen & gone]
            found.add(partly, name, "a value, as the rest of the observation has")
        return seen & ~np.any(missing, axis=1)

    def _read_classes(
        self, found: "_Found", channel: str, name: Any, cells: pd.Series, rows: Rows
    ) -> tuple[Float[np.ndarray, " n"], Any]:
        """The numbers of classes. Labels are numbered by the model; here they are NaN."""
        unknown = np.full(len(cells), np.nan)
        if isinstance(cells.dtype, pd.CategoricalDtype):
            return unknown, None
        present = cells.notna().to_numpy()
        if not present.any():
            return unknown, None
        classes, kind = class_count(self._channels[channel]), self.kinds.get(channel)
        if kind is None:
            kind = self.kinds[channel] = _class_kind(cells.iloc[int(np.argmax(present))], classes)
        if kind == NUMBER:
            return _numbers(found, name, cells, rows)
        texts = [_written(cell) for cell in cells]
        if kind == BOOLEAN:
            if pd.api.types.is_bool_dtype(cells):
                return cells.to_numpy(float), None
            read = [None if text is None else _BOOLEANS.get(text.lower()) for text in texts]
            bad = present & np.array([value is None for value in read])
            found.add(rows[bad], name, "true or false")
            return unknown, np.array(read, object)
        texts = [c if isinstance(c, str) else text for c, text in zip(cells, texts, strict=True)]
        known = None if self._labels is None else list(self._labels(channel))
        if known is not None:
            bad = np.zeros(len(texts), bool)
            for row in np.flatnonzero(present):
                if texts[row] not in known and len(known) < classes:
                    known.append(texts[row])
                bad[row] = texts[row] not in known
            found.add(rows[bad], name, f"one of {classes} labels, {known},")
        return unknown, np.array(texts, object)


class _Found:
    """A piece whose cells are being read, and the rows of it that are bad, each for one reason."""

    def __init__(self, piece: Piece, needed: Sequence[str]):
        self.piece, self.frame = piece, piece.frame
        self.bad: dict[int, Bad] = {}
        missing = [name for name in needed if name not in self.frame]
        if missing and piece.has_header:
            raise DataError(
                problem(f"the columns {[*needed]}", f"a table without {missing}", "Add them.")
            )
        if missing and len(self.frame):
            self.frame = self.frame.assign(**dict.fromkeys(missing))

    def replace(self, name: str, values: Any) -> None:
        """Put values in the place of a column."""
        if isinstance(values, pd.Series):
            values = values.array
        self.frame = self.frame.assign(**{name: values})

    def add(self, rows: Rows, column: str, expected: str, remedy: str = "Correct it.") -> None:
        """Note cells that are bad, in rows that were fine so far."""
        for row in rows.tolist():
            if row not in self.bad:
                cell = cell_text(_plain(self.piece.frame[column].iloc[row]))
                self.bad[row] = self._of(row, column, expected, cell, remedy)

    def add_rows(self, rows: Rows, expected: str, got: str, remedy: str) -> None:
        """Note rows that are bad as a whole."""
        for row in rows.tolist():
            self.bad.setdefault(row, self._of(row, None, expected, got, remedy))

    def check_present(self, name: str, cells: pd.Series) -> None:
        """Note rows without a value in a column that needs one."""
        gone = cells.isna().to_numpy()
        for row in np.flatnonzero(gone).tolist():
            bad = self._of(row, name, "a value", "an empty cell", "Fill it in.")
            self.bad.setdefault(row, bad)

    def check_size(self, name: str, values: Any, inside: Rows, rows: Rows | None = None) -> None:
        """Note numbers that cannot be computed with; those that are missing are not meant."""
        numbers = np.asarray(values, float)[inside]
        large = ~is_usable(numbers) & ~np.isnan(numbers)
        if large.any():
            places = inside if rows is None else rows[inside]
            self.add(places[large], name, f"a finite number, below {LARGEST:g} in size,")

    def is_good(self) -> Bool[np.ndarray, " n"]:
        """Which rows are not bad."""
        good = np.ones(len(self.frame), bool)
        good[list(self.bad)] = False
        return good

    def without_bad(self) -> pd.DataFrame:
        """The rows that can be used."""
        return self.frame[self.is_good()].reset_index(drop=True) if self.bad else self.frame

    def _of(self, row: int, column: str | None, expected: str, cell: str, remedy: str) -> Bad:
        return Bad(self.piece.unit, self.piece.numbers[row], column, expected, cell, remedy)


def kinds_of(axes: Sequence[Axis]) -> dict[str, str]:
    """What the input columns of a model hold."""
    times = [TIME if axis.zone is None else ZONED for axis in axes]
    kinds = [time if axis.is_time else NUMBER for axis, time in zip(axes, times, strict=True)]
    return dict(zip(input_names(axes), kinds, strict=True))


def _numbers(
    found: _Found, name: Any, cells: pd.Series, rows: Rows
) -> tuple[Float[np.ndarray, " n"], Any]:
    """The numbers of a column, and what is put in its place; None if it holds numbers."""
    if pd.api.types.is_numeric_dtype(cells):
        return cells.to_numpy(float, na_value=np.nan), None
    read = _as_numbers(cells)
    found.add(rows[np.isnan(read) & cells.notna().to_numpy()], name, "a number")
    return read, read


def _as_numbers(cells: pd.Series) -> Float[np.ndarray, " n"]:
    """Cells as numbers; NaN is what is none."""
    return pd.to_numeric(cells.astype(object), errors="coerce").to_numpy(float)


def _kind_of(times: pd.Series) -> str:
    return TIME if times.dt.tz is None else ZONED


def _class_kind(cell: Any, classes: int) -> str:
    """How classes are written, by the first of them."""
    if isinstance(cell, bool | np.bool_) or (_written(cell) or "").lower() in ("true", "false"):
        return BOOLEAN if classes == 2 else LABEL
    return LABEL if np.isnan(_as_numbers(pd.Series([cell], dtype=object))[0]) else NUMBER


def _written(cell: Any) -> str | None:
    """The text of a cell, without spaces around it; None if it is missing."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, float | np.floating):
        return None if np.isnan(cell) else f"{cell:.0f}" if cell == np.round(cell) else str(cell)
    return str(cell)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _order(bad: Bad) -> int:
    """Lines and rows come in their order; messages stay as they are."""
    return bad.number if isinstance(bad.number, int) else 0
