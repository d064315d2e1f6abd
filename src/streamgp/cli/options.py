"""What several commands have in common on the command line."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgp.cli import exits
from streamgp.configuration import ON_ERROR

if TYPE_CHECKING:
    from streamgp.cli.feeds import Source


def add_command(
    commands: Any,
    name: str,
    action: Callable[[argparse.Namespace], None],
    about: str,
    more: str = "",
) -> argparse.ArgumentParser:
    """Add a command that does an action.

    Args:
        commands: What `add_subparsers` gave.
        name: Of the command.
        action: What is called with the options.
        about: One line about it, which begins with a small letter.
        more: What its help ends with.
    """
    command = commands.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.",
        epilog=f"{more}\n{exits.explained()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.set_defaults(command=action)
    return command


def add_source(parser: argparse.ArgumentParser) -> None:
    """Options that say what is learned."""
    parser.add_argument("config", type=Path, metavar="CONFIG.toml", help="the configuration")
    parser.add_argument(
        "data",
        help="a .csv, .parquet or .jsonl file, - for standard input, or a feed: "
        "kafka://broker:9092/topic or nats://server:4222/STREAM",
    )
    parser.add_argument(
        "--skip-learned", action="store_true",
        help="skip as many rows of standard input as were learned before; files are always "
        "continued after those rows",
    )  # fmt: skip
    parser.add_argument(
        "--follow", action="store_true",
        help="wait for further rows at the end of the file, a .csv or .jsonl one that others write",
    )  # fmt: skip
    add_source_config(parser)
    add_format(parser)


def add_source_config(parser: argparse.ArgumentParser) -> None:
    """The settings of feeds that brokers have."""
    parser.add_argument(
        "--source-config", type=Path, metavar="FILE",
        help="a TOML file with settings of brokers, such as passwords: the table [kafka] has those "
        "of librdkafka, [nats] those of nats.connect",
    )  # fmt: skip


def source(options: argparse.Namespace) -> "Source":
    """What `add_source` has read."""
    from streamgp.cli.feeds import Source

    return Source(
        options.data, options.format, options.follow, options.skip_learned, options.source_config
    )


def add_predicting(parser: argparse.ArgumentParser) -> None:
    """Options that say what is predicted, and where it is written."""
    parser.add_argument(
        "--out", default="-", metavar="FILE", help="a file, or - for standard output (default)"
    )
    add_channel(parser)
    parser.add_argument(
        "--level", type=float, default=0.95, help="the probability of the intervals (default: 0.95)"
    )
    add_format(parser)


def add_on_error(parser: argparse.ArgumentParser) -> None:
    """What to do with rows of a table of inputs that cannot be used."""
    parser.add_argument(
        "--on-error", choices=ON_ERROR, default="stop",
        help="stop at a row that cannot be used (default), or leave it out",
    )  # fmt: skip


def add_channel(parser: argparse.ArgumentParser) -> None:
    """The choice of channels."""
    parser.add_argument(
        "--channel", action="append", metavar="NAME",
        help="use only this channel; the option may be repeated",
    )  # fmt: skip


def add_format(parser: argparse.ArgumentParser) -> None:
    """The format of a table."""
    kinds = ("csv", "jsonl", "parquet")
    parser.add_argument(
        "--format", choices=kinds, help="the format of the data, if the file's name does not tell"
    )


def shown(where: str) -> str:
    """A store as it may be printed: a URL without what may be secret."""
    head, mark, rest = where.partition("://")
    return where if not mark else f"{head}://{rest.split('?')[0].rpartition('@')[2]}"
