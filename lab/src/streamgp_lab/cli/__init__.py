"""The command line of the laboratory."""

from streamgp_lab.cli.main import main

__all__ = ["main"]
