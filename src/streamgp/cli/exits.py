"""The exit statuses of the command."""

import enum
import sys
from typing import NoReturn


class Status(enum.IntEnum):
    """What a command ends with, for scripts."""

    DONE = 0
    FAILED = 1
    MISUSED = 2  # as argparse ends
    INTERRUPTED = 130  # as shells say of a program that Ctrl-C has ended


MEANINGS = {
    Status.DONE: "done: the table was read to its end, the file is written",
    Status.FAILED: "an error, told in one sentence: a row or a file that cannot be used, a package "
    "that is missing",
    Status.MISUSED: "an unknown command or option",
    Status.INTERRUPTED: "stopped by Ctrl-C or SIGTERM; what `run` and `fleet run` had learned is "
    "saved",
}


def explained() -> str:
    """The statuses and their meanings, for the end of a help."""
    lines = [f"  {status.value:<5} {meaning}" for status, meaning in MEANINGS.items()]
    return "\n".join(["exit statuses:", *lines])


def fail(sentence: str) -> NoReturn:
    """End with a sentence on standard error, which gives the status `FAILED`."""
    sys.exit(sentence)


def interrupted() -> NoReturn:
    """End as a command that was stopped."""
    sys.exit(Status.INTERRUPTED)
