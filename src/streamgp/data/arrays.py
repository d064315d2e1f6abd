"""Check what a user handed over and turn it into plain arrays, or say exactly what is wrong."""

from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.errors import DataError, problem

_LARGEST = 1e100  # squares of larger numbers overflow


def inputs(x: Any, width: int | None, where: str) -> Float[np.ndarray, "N P"]:
    """Inputs as (N, P): a vector is one input column; `width` is the P seen before."""
    array = numbers(x, f"inputs of {where}")
    if array.ndim <= 1:
        array = np.atleast_1d(array)[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            problem(
                f"inputs of {where} of shape (N,) or (N, P)",
                f"shape {array.shape}",
                "Put one observation a row.",
            )
        )
    if width is not None and array.shape[1] != width:
        raise DataError(
            problem(
                f"inputs of {where} with {width} column(s), as in the first batch",
                f"{array.shape[1]}",
                "Give every batch and every prediction the same input columns.",
            )
        )
    _check_finite(array, f"inputs of {where}")
    return array


def observations(y: Any, rows: int, where: str) -> Float[np.ndarray, " N"]:
    """Observations as (N,), one a row of the inputs."""
    array = np.atleast_1d(numbers(y, f"observations of {where}"))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (rows,):
        raise DataError(
            problem(
                f"{rows} observation(s) of {where}, one a row of its inputs",
                f"shape {array.shape}",
                "Give one number for each input row.",
            )
        )
    _check_finite(array, f"observations of {where}")
    return array


def numbers(values: Any, what: str) -> np.ndarray:
    """Anything that holds numbers, as floats."""
    try:
        if np.ma.is_masked(values):
            raise TypeError("with masked values")
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            first = array.ravel()[0] if array.size else None
            raise TypeError(f"values of type {array.dtype}, such as {first!r}")
        return array.astype(float)
    except (TypeError, ValueError) as error:
        raise DataError(
            problem(
                f"{what} as numbers", f"{type(values).__name__} ({error})", "Convert them first."
            )
        ) from error


def _check_finite(array: np.ndarray, what: str) -> None:
    bad = np.argwhere(~(np.abs(array) < _LARGEST))
    if len(bad):
        raise DataError(
            problem(
                f"finite {what}, below {_LARGEST:g} in size",
                f"{len(bad)} NaN or infinite or larger value(s), the first in row {bad[0][0]}",
                "Leave those rows out: a missing observation needs no placeholder.",
            )
        )
