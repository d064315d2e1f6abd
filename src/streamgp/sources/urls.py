"""Feeds by their URLs."""

import importlib
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

from streamgp.errors import ConfigurationError, problem
from streamgp.sources.feed import AbstractFeed, FileFeed

BROKERS = ("kafka", "nats")  # kinds of feeds that a server has
_FEEDS = ("file", *BROKERS)


def asked(url: str, name: str) -> str | None:
    """What a URL asks for under a name, such as the model in `…?model=plant`."""
    return parse_qs(urlsplit(url).query).get(name, [None])[0]


def without(url: str, name: str) -> str:
    """A URL that does not ask for anything under a name.

    >>> without("nats://server:4222/STREAM?subject=plant.north&model=plant", "model")
    'nats://server:4222/STREAM?subject=plant.north'
    """
    parts = urlsplit(url)
    rest = [(key, value) for key, value in parse_qsl(parts.query) if key != name]
    return urlunsplit(parts._replace(query=urlencode(rest)))


def kind(url: str) -> str | None:
    """Which kind of feed a URL names; None if it names none."""
    parts = urlsplit(url)
    if parts.scheme not in _FEEDS or len(parts.path) < 2 or "@" in parts.netloc:
        return None  # URLs are logged and stored, so that passwords have no place in them
    return parts.scheme if parts.netloc or parts.scheme == "file" else None


def check_installed(url: str) -> None:
    """Raise an `ImportError` if a package is missing that a feed needs."""
    if kind(url) in BROKERS:
        importlib.import_module(f"streamgp.sources.{kind(url)}")


def opened(url: str, place: Any, settings: Path | None = None) -> AbstractFeed:
    """A feed, from a place on.

    Args:
        url: `file:///readings.jsonl`, `kafka://broker:9092/topic`, or `nats://server:4222/STREAM`,
            which may ask for one `subject`.
        place: What `Messages.place` was; None for the beginning.
        settings: A TOML file with further settings, such as those of TLS: the table `kafka` has
            those of librdkafka, and `nats` those of `NatsFeed`.

    Raises:
        DataError: If there is no such topic or stream.
        SourceError: If no server answers.
        ConfigurationError: If the settings cannot be read.
        ImportError: If a package is missing.
    """
    parts = urlsplit(url)
    name = parts.path[1:]
    if parts.scheme == "file":
        return FileFeed(parts.path, place)
    more = _read(settings, parts.scheme)
    if parts.scheme == "kafka":
        from streamgp.sources.kafka import KafkaFeed

        return KafkaFeed(parts.netloc, name, place, more)
    from streamgp.sources.nats import NatsFeed

    return NatsFeed(parts.netloc, name, place, asked(url, "subject"), more)


def _read(settings: Path | None, table: str) -> dict[str, Any]:
    try:
        text = "" if settings is None else settings.read_text(encoding="utf-8")
        return tomllib.loads(text).get(table, {})
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            problem("a TOML file of settings", f"{settings}: {error}", "Correct it.")
        ) from error
