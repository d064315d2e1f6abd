"""Shapes and types are checked at run time in every test: the annotations are part of the code."""

import os
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"  # pictures are drawn, and shown nowhere
# Tests meet many shapes and compute little in each: programs are compiled fast, not made fast.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false"

import jax
import pytest
from jaxtyping import config, install_import_hook

with install_import_hook("streamgp", "beartype.beartype"):
    import streamgp  # noqa: F401


_MANY_MAPS = 20_000

# Most of the suite's time is compilation; workers share what they have compiled.
_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.fixture(autouse=True, scope="module")
def _room_for_programs():
    """A compiled program takes a dozen memory maps, and Linux gives a process 65,530 of them.

    Thousands of programs come together in a suite; beyond that the process dies in the compiler.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_text().count("\n") > _MANY_MAPS:
        jax.clear_caches()


@pytest.fixture
def unchecked(monkeypatch):
    """As users run it: wrong types reach the library's own checks."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)


@pytest.fixture
def fully_compiled():
    """As users run it, for tests that compute much."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield
