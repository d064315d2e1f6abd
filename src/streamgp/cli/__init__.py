"""The command line."""

from streamgp.cli.main import main

__all__ = ["main"]
