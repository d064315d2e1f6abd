"""Compiled programs, kept between processes."""

import os
from pathlib import Path

import jax

_SHORTEST = 0.1  # seconds of compilation that are worth a file


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
