"""How programs are compiled, and where they are kept between processes."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax

F = TypeVar("F", bound=Callable[..., Any])

# XLA's newer code generator for fused loops takes a quarter of the compile time or more, and gives
# nothing back here, where the work is in LAPACK calls and products (docs/adr/0011).
_OPTIONS = {"xla_cpu_use_fusion_emitters": False}

_SHORTEST = 0.1  # seconds of compilation that are worth a file


def compiled(function: F) -> F:
    """`function` as a program, compiled for each new shape of its arrays."""

    @functools.cache
    def program() -> Callable[..., Any]:
        return eqx.filter_jit(function, compiler_options=_understood())  # type: ignore[call-overload]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return program()(*args, **kwargs)

    return run  # type: ignore[return-value]


@functools.cache
def _understood() -> dict[str, bool] | None:
    """The options, if this version of XLA has them."""
    try:
        jax.jit(lambda: 0, compiler_options=_OPTIONS)()
    except jax.errors.JaxRuntimeError:
        return None
    return _OPTIONS


def use_compilation_cache(folder: str | os.PathLike[str] | None = None) -> None:
    """Keep compiled programs on disk, so that the first update of the next process need not wait.

    In `folder`, or in `~/.cache/streamgp/jax` unless JAX was given a place of its own. Call it
    before the first update.

    Example:
        >>> import streamgp as sgp
        >>> sgp.use_compilation_cache()
    """
    if folder is None and getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    place = Path(folder) if folder is not None else Path.home() / ".cache" / "streamgp" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST)
