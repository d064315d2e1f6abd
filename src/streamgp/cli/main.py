"""`streamgp`: dispatch to commands."""


def main() -> None:
    """The entry point."""
