"""`streamgp-lab check`: run long checks of the library."""

import importlib
from collections.abc import Mapping
from typing import Any

from streamgp_lab.cli import listing


def list_all(checks: Mapping[str, str]) -> None:
    """Print every check and what it does."""
    listing.show({name: f"{about[0].upper()}{about[1:]}." for name, about in checks.items()})


def run(name: str, **settings: Any) -> None:
    """Run a check: the function `main` of its module."""
    importlib.import_module(f"streamgp_lab.checks.{name}").main(**settings)
