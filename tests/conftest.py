"""Shapes and types are checked at run time in every test: the annotations are part of the code."""

import os

os.environ["MPLBACKEND"] = "Agg"  # pictures are drawn, and shown nowhere

import pytest
from jaxtyping import config, install_import_hook

with install_import_hook("streamgp", "beartype.beartype"):
    import streamgp  # noqa: F401


@pytest.fixture
def unchecked(monkeypatch):
    """As users run it: wrong types reach the library's own checks."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)
