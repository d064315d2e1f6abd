"""How the library computes, whatever the process around it is set to: in double precision, and
with LAPACK on one thread.

XLA runs its own threads; a LAPACK that brings another set for small matrices makes both wait for
each other (on two busy cores a triangular solve of 64 by 1,024 took 8 ms instead of 1). Both
settings are put back on the way out.
"""

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import jax
import scipy.linalg  # noqa: F401 (loads the LAPACK that JAX calls, for the controller to find)
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


class _OneThread:
    """LAPACK on one thread while anyone is inside.

    The number of threads belongs to the process, so only the first to come in sets it and only the
    last to leave puts it back. If each caller did so, two that overlap could leave it at one.
    """

    def __init__(self) -> None:
        apis = ["openblas", "mkl", "blis", "flexiblas"]
        self._lapack = ThreadpoolController().select(internal_api=apis)
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = self._lapack.limit(limits=1)
                self._limit.__enter__()
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.__exit__(None, None, None)


_one_thread = _OneThread()


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with 64-bit JAX types and a single LAPACK thread."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True), _one_thread:
            return function(*args, **kwargs)

    return wrapped
