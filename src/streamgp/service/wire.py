"""Wire: numbers, times and labels as JSON has them."""

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic_core import from_json, to_json
from starlette.responses import Response

JSON = "application/json"


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


def written(value: Any) -> bytes:
    """A value of the library as the bytes of JSON. Numbers that JSON lacks become null.

    It is for the thread that made the value. Other threads have their turn between two arrays, so
    that a large answer holds up nobody.
    """
    return to_json(value, inf_nan_mode="null", fallback=plain)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON, of a value or of bytes that have been written already."""
    body = value if isinstance(value, bytes) else written(value)
    return Response(body, status, headers=dict(headers or {}), media_type=JSON)


def read_json(text: bytes) -> Any:
    """JSON as it is defined: UTF-8, without NaN, infinities and halves of characters.

    Raises:
        ValueError: If the text is not JSON, or nested too deeply.
    """
    return from_json(text, allow_inf_nan=False)
