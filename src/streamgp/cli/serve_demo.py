"""The demonstration of the service: the airport's hours arrive, a few at a time."""

import datetime
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamgp.cli import airport
from streamgp.client import Client, ServiceError

_NAME = "airport"
_HOURS = 6  # of one batch
_CHANNELS = {"temperature": "Gaussian", "rain": "Bernoulli", "departures": "Poisson"}
_MODEL = {"latents": 2, "seasons": ["1D"], "learning": {"every": 150}}

Rows = list[dict[str, Any]]


def feed(url: str, stream: Sequence[Rows], seconds: float, stop: threading.Event) -> None:
    """Make a model and send it the stream, at a pace that can be watched.

    Args:
        url: The address of the service.
        stream: The batches, as `batches` gives them.
        seconds: The time between two batches.
        stop: Set when the demonstration ends.
    """
    with Client(url, attempts=12) as client:
        try:
            model = client.create(
                _NAME, _CHANNELS, data={"inputs": "time"}, model=_MODEL
            ) if _waits(client) else client.model(_NAME)  # fmt: skip
            for number, rows in enumerate(stream):
                if stop.is_set():
                    return
                model.update(rows, key=f"demo-{number}")
                stop.wait(seconds)
        except ServiceError:
            if not stop.is_set():
                raise


def _waits(client: Client) -> bool:
    """Whether the service answers and has no such model yet."""
    return _NAME not in client.models()


def batches() -> list[Rows]:
    """The airport's hours as rows, a few hours at a time. What was not observed is missing."""
    channels = airport.load()
    first = datetime.datetime.fromisoformat(airport.FIRST_DAY).replace(tzinfo=datetime.UTC)
    hours = np.unique(np.concatenate([np.round(24 * c.t) for c in channels.values()])).astype(int)
    values = {
        name: dict(zip(np.round(24 * c.t).astype(int).tolist(), c.y.tolist(), strict=True))
        for name, c in channels.items()
    }
    found = []
    for begin in range(0, int(hours[-1]) + 1, _HOURS):
        rows = []
        for hour in range(begin, begin + _HOURS):
            seen = {name: own[hour] for name, own in values.items() if hour in own}
            if seen:
                time = first + datetime.timedelta(hours=hour)
                rows.append({"time": time.isoformat(), **seen})
        if rows:
            found.append(rows)
    return found
