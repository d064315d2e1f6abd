"""Settings: what an operator decides about a service."""

import dataclasses
import datetime
import ipaddress
import os
from pathlib import Path

from streamgp.service.tokens import Token


def is_loopback(host: str) -> bool:
    """Whether an address is one that only programs of this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a client may ask for at most.

    Attributes:
        body: Bytes of a request, also after it is decompressed.
        body_seconds: How long a client may take to send a request.
        rows: Rows of one batch of observations.
        channels: Channels of one model.
        latents: Latent functions of one model.
        inducing: The budget of inducing points of one latent function.
        keep: Rows that a model is asked to keep. Over several inputs, their number is cubed.
        models: Models, with those of fleets.
        predictions: Numbers of inputs times channels in one prediction.
        answer: Numbers and labels in one answer with predictions: inputs times columns. As JSON,
            a number takes about 20 bytes.
        predict_seconds: How long a prediction may take, with its wait for a thread, before the
            client is told to come back.
        queue: Batches that wait for one model.
        waiting: Batches that wait for all models together.
        subscribers: Clients that follow events.
    """

    body: int = 16 * 2**20
    body_seconds: float = 30.0
    rows: int = 50_000
    channels: int = 64
    latents: int = 16
    inducing: int = 2048
    keep: int = 4096
    models: int = 10_000
    predictions: int = 100_000
    answer: int = 1_000_000
    predict_seconds: float = 30.0
    queue: int = 64
    waiting: int = 1024
    subscribers: int = 100


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that a service is started with.

    Attributes:
        store: Where models are kept: the path of a file, or the URL of a PostgreSQL database.
        tokens: Who may do what. Without any, nobody may do anything, unless `open` says otherwise.
        open: Whether requests need no token. Only for a service that listens on this machine alone.
        limits: What a client may ask for at most.
        cache: How many models are kept in memory.
        keep_answers: How long the answer to a request with an idempotency key is kept, for a
            client that sends it again.
        workers: How many models learn at the same time, and how many long predictions are made.
        sources: URLs of feeds that models follow, such as `file:///readings.jsonl?model=plant`.
        source_settings: A TOML file with settings of feeds: the table `kafka` has those of
            librdkafka, and `nats` those of `nats.connect`.
    """

    store: str | os.PathLike[str]
    tokens: tuple[Token, ...] = ()
    open: bool = False
    limits: Limits = dataclasses.field(default_factory=Limits)
    cache: int = 64
    keep_answers: datetime.timedelta = datetime.timedelta(days=7)
    workers: int = dataclasses.field(default_factory=lambda: max(2, os.cpu_count() or 1))
    sources: tuple[str, ...] = ()
    source_settings: Path | None = None
