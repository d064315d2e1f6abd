"""The latest observations, for pictures. They are kept in memory only, and few of them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

import streamgp as sgp
from streamgp.service.reports import Row
from streamgp.service.specifications import layout_of
from streamgp.service.wire import plain

_MOST = 200  # of one batch


def rows_of(model: sgp.ContinualGP, frame: pd.DataFrame) -> tuple[Row, ...]:
    """The last rows of a batch: one input, a channel and a value each."""
    layout = layout_of(model)
    inputs = layout["inputs"]
    if isinstance(inputs, list) and len(inputs) != 1:
        return ()
    x = frame[inputs if isinstance(inputs, str) else inputs[0]]
    return tuple(_rows(model, frame.tail(_MOST), x.tail(_MOST), layout))


def _rows(
    model: sgp.ContinualGP, frame: pd.DataFrame, x: pd.Series, layout: dict[str, Any]
) -> Iterator[Row]:
    at = [_shown(value) for value in x]
    if layout["value"] is not None:
        only = model.channels[0]
        names = [only] * len(at) if layout["channel"] is None else frame[layout["channel"]]
        for name, place, value in zip(names, at, frame[layout["value"]], strict=True):
            if not pd.isna(value):
                yield Row(str(name), place, _shown(value))
        return
    for name in model.channels:
        if name in frame:
            for place, value in zip(at, frame[name], strict=True):
                if not pd.isna(value):
                    yield Row(name, place, _shown(value))


def _shown(value: Any) -> Any:
    return value.isoformat() if isinstance(value, pd.Timestamp) else plain(value)
