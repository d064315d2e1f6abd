"""Shapes and types are checked at run time in every test: the annotations are part of the code."""

import jax
import pytest
from jaxtyping import install_import_hook

with install_import_hook("streamgp", "beartype.beartype"):
    import streamgp  # noqa: F401


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield
