"""Where the rows of a run come from, and which of them were learned before."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from streamgp.cli import follow, tables
from streamgp.cli.broker import BrokerFeed
from streamgp.cli.left_out import LeftOut
from streamgp.configuration import Config
from streamgp.errors import ConfigurationError, problem
from streamgp.sources import urls


class Source(NamedTuple):
    """A table that is to be learned.

    Attributes:
        name: Its file, `-` for standard input, or the URL of a feed that a broker has.
        format: Its format, if the name of its file does not tell.
        is_followed: Whether to wait for further rows at the end of the file.
        skip_learned: Whether the rows of standard input begin again with the first one, so that
            those that were learned are left out. Rows of files that were learned always are.
        settings: A TOML file with settings of brokers.
    """

    name: str
    format: str | None = None
    is_followed: bool = False
    skip_learned: bool = False
    settings: Path | None = None

    @property
    def is_standard_input(self) -> bool:
        """Whether it is not a file."""
        return self.name == tables.STDIN

    @property
    def is_of_a_broker(self) -> bool:
        """Whether it is a feed of messages."""
        return urls.kind(self.name) in urls.BROKERS


class Learned(NamedTuple):
    """What was learned before.

    Attributes:
        where: What has learned it, in words.
        rows: The number of rows.
        place: How far what is followed was read, as JSON has it.
    """

    where: str
    rows: int
    place: Any


def feed(
    source: Source, config: Config, learned: Learned, console: Console
) -> Iterator[follow.Batch]:
    """The rows that were not learned yet, in batches, and a word on where they begin.

    Raises:
        ConfigurationError: If the source cannot be followed, or has to be.
    """
    text, size = [*config.data.formats], config.stream.batch
    if source.is_of_a_broker:
        messages = BrokerFeed(source.name, size, place=learned.place, settings=source.settings)
        _say(console, source, learned, 0)
        return iter(messages)
    skip = learned.rows if source.skip_learned or not source.is_standard_input else 0
    if source.is_followed:
        skip = skip if learned.place is None else 0
        growing = follow.Feed(
            source.name, size, text, place=learned.place, skip=skip, format=source.format
        )
        _say(console, source, learned, skip, is_lost=growing.is_lost)
        return iter(growing)
    if learned.place is not None and not source.is_standard_input:
        what = learned.place.get("feed", "`--follow`")
        raise ConfigurationError(
            problem(
                f"{what}, with which {learned.where} was made",
                "a file whose rows are to be counted from its beginning",
                f"Add {what}, or start anew with `--restart`.",
            )
        )
    _say(console, source, learned, skip)
    pieces = tables.pieces(source.name, size, skip=skip, format=source.format, text=text)
    return (follow.Batch(piece, learned.place) for piece in pieces)


def left_out(
    source: Source, config: Config, counts: Mapping[str, int], console: Console
) -> LeftOut:
    """What a run does with rows that cannot be used.

    Messages of a broker can be neither corrected nor taken back: unless the configuration says
    otherwise, they are left out.
    """
    usual = "skip" if source.is_of_a_broker else "stop"
    return LeftOut(
        "standard input" if source.is_standard_input else source.name,
        skips=(config.data.on_error or usual) == "skip",
        how='`on_error = "skip"` in [data]',
        console=console,
        counts=counts,
    )


def _say(
    console: Console, source: Source, learned: Learned, skip: int, *, is_lost: bool = False
) -> None:
    """Say what happens to the rows at the beginning of the table."""
    name = "standard input" if source.is_standard_input else source.name
    if is_lost:
        what = (
            "The file that the last of them came from is gone. The run goes on with the first row "
            f"of {name}; rows that only the other file had are not learned."
        )
    elif skip:
        what = f"The first {skip:,} rows of {name} are skipped."
    elif source.is_followed or source.is_of_a_broker:
        what = f"The run goes on with the next row of {name}."
    else:
        what = f"No row of {name} is skipped."
    if learned.rows:
        console.print(f"{learned.where} has learned {learned.rows:,} rows. {what}", soft_wrap=True)
