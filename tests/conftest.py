"""What all tests share.

The hook checks shapes and types at run time only where the library was not imported before it. The
filters of warnings in pyproject.toml import it first, so at present nothing is checked.
"""

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
