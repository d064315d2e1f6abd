"""A plugin of pytest: shapes and types at run time (`python -m pytest -p tests.checking`).

Arguments and results of all functions of the library must then be as annotated. Nothing may import
the library earlier; in pyproject.toml warnings are filtered by their text, not by their class.

The checker is beartype, which lets through what it cannot check. Every function is decorated by
itself, outside its class, so `Self` has no meaning there; and a protocol that is not
`runtime_checkable` can be checked by mypy only. NumPy's numbers, and arrays without dimensions,
count as numbers: the shapes of arrays are what matters here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype
from beartype.door import is_bearable
from beartype.roar import BeartypeException
from jaxtyping import Float, install_import_hook

_NUMBERS = BeartypeConf(
    hint_overrides=FrozenDict(
        {
            bool: bool | np.bool_,
            int: int | np.integer,
            float: float | int | np.number | Float[np.ndarray, ""],
            np.ndarray: np.ndarray | np.number,
        }
    )
)


def pytest_configure() -> None:
    """Before any test imports the library."""
    install_import_hook("streamgp", "tests.checking.checked")


def checked(function: Callable) -> Callable:
    """The function, which raises where an argument or a result is not as annotated."""
    hints = function.__annotations__
    function.__annotations__ = {k: h if _can_be_checked(h) else Any for k, h in hints.items()}
    return beartype(conf=_NUMBERS)(function)


def _can_be_checked(hint: object) -> bool:
    try:
        is_bearable(None, hint, conf=_NUMBERS)
    except BeartypeException:
        return False
    return True
