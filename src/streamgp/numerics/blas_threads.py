"""BLAS on one thread while the library computes.

Its matrices are small. A BLAS that splits them over threads spends more time waiting than working:
on two busy cores, solves and products of 64 by 300 took 23 times the CPU time. The number of
threads belongs to the process in most BLAS libraries, so it is set by the first caller to come in
and put back by the last to leave. Where the library in use has no such switch that can be found,
nothing is done.
"""

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np
from scipy.linalg import _fblas

P = ParamSpec("P")
R = TypeVar("R")

# (to set, to get) under the names that builds of OpenBLAS, MKL and BLIS give them.
_SWITCHES = (
    *(
        (f"{before}openblas_set_num_threads{after}", f"{before}openblas_get_num_threads{after}")
        for before in ("scipy_", "")
        for after in ("64_", "", "_64")
    ),
    ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads"),
    ("bli_thread_set_num_threads", "bli_thread_get_num_threads"),
)


class _OneThread:
    """One BLAS thread while anyone is inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._found: list[int] = []

    @functools.cached_property
    def _switches(self) -> list[tuple[Any, Any]]:
        """The switches of the libraries that NumPy and SciPy are linked with."""
        modules = (np.linalg._umath_linalg, _fblas)
        return [pair for module in modules if (pair := _switch_of(module.__file__)) is not None]

    def forked(self) -> None:
        """In a new process no other thread is inside, whoever was when it was forked."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._put_back()

    def _put_back(self) -> None:
        for (set_threads, _), before in zip(self._switches, self._found, strict=True):
            set_threads(before)

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._found = [get() for _, get in self._switches]
                for set_threads, _ in self._switches:
                    set_threads(1)
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
                self._put_back()


def _switch_of(path: str | None) -> tuple[Any, Any] | None:
    """The switch of the BLAS that an extension module is linked with, if there is one."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for set_name, get_name in _SWITCHES:
        try:
            return getattr(library, set_name), getattr(library, get_name)
        except AttributeError:
            continue
    return None


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_one_thread.forked)


def on_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with BLAS on one thread."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _one_thread:
            return function(*args, **kwargs)

    return wrapped
