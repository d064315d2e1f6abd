"""Long checks of streamgp. `python -m streamgp_lab.checks.NAME` is `streamgp-lab check NAME`."""

import sys


def command(name: str) -> None:
    """Run a check with the options of the command line."""
    from streamgp_lab.cli import main

    main(["check", name, *sys.argv[1:]])
