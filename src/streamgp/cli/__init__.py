"""The command line: `streamgp COMMAND`."""

from streamgp.cli.main import main

__all__ = ["main"]
