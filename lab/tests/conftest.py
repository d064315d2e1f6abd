"""Shapes and types of the baselines are checked as they run."""

import pytest
from jaxtyping import config, install_import_hook

install_import_hook(
    ["streamgp_lab.baselines", "streamgp_lab.problem", "streamgp_lab.scores"], "beartype.beartype"
)


@pytest.fixture
def unchecked(monkeypatch):
    """As users run it: nothing is checked, and experiments take their usual time."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)
