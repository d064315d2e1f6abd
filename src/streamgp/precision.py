"""How the library computes, whatever the process around it is set to: in double precision, and
with LAPACK on one thread.

XLA runs its own threads; a LAPACK that brings another set for small matrices makes both wait for
each other (on two busy cores a triangular solve of 64 by 1,024 took 8 ms instead of 1). Both
settings are put back on the way out.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import scipy.linalg  # noqa: F401 (loads the LAPACK that JAX calls, for the controller to find)
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_lapack = ThreadpoolController().select(internal_api=["openblas", "mkl", "blis", "flexiblas"])


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with 64-bit JAX types and a single LAPACK thread."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True), _lapack.limit(limits=1):
            return function(*args, **kwargs)

    return wrapped
