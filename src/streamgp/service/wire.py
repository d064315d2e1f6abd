"""Wire: numbers, times and labels as JSON has them."""

import datetime
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from starlette.responses import JSONResponse


def plain(value: Any) -> Any:
    """A value of the library as JSON has it. Numbers that JSON lacks become null."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return f"{value}"
    return str(value)


def _array(values: np.ndarray) -> list[Any]:
    if values.dtype.kind == "f":
        if np.isfinite(values).all():
            return values.tolist()
        known = values.astype(object)
        known[~np.isfinite(values)] = None
        return known.tolist()
    if values.dtype.kind in "iub":
        return values.tolist()
    if values.dtype.kind == "M":
        return np.datetime_as_string(values).tolist()
    return [plain(part) for part in values.tolist()]


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An answer in JSON."""
    return JSONResponse(plain(value), status, headers=dict(headers or {}))


def read_json(text: bytes) -> Any:
    """JSON as it is defined, without NaN and infinities.

    Raises:
        ValueError: If the text is not JSON, or nested too deeply.
    """

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
