"""Memory: what a long update needed for a while goes back to the system.

The C library keeps what was freed, for later, and a long update frees much: the arrays of one with
20,000 rows on a chain take ten times the memory that its model does. A service that runs for months
would then be as large as its largest batch ever was.
"""

import ctypes
from collections.abc import Callable

_LONG = 0.5  # seconds of an update after which it is worth the few milliseconds


def _trim() -> Callable[[int], int] | None:
    """The function of the GNU C library that gives memory back; None where there is none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


_malloc_trim = _trim()


def give_back(seconds: float) -> None:
    """Give memory that is free back to the system, after work that took so long."""
    if seconds > _LONG and _malloc_trim is not None:
        _malloc_trim(0)
