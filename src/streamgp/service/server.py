"""Server: a service that listens."""

import dataclasses
import logging
import sys
from types import FrameType
from typing import Any

import uvicorn

from streamgp.errors import ConfigurationError, problem
from streamgp.service.app import create_app
from streamgp.service.guard import Lines
from streamgp.service.settings import Settings, is_loopback

_SWITCH = 0.0005  # seconds after which a thread that computes lets another one in


@dataclasses.dataclass(frozen=True)
class Listening:
    """Where a service listens.

    Attributes:
        host: The address.
        port: The port; 0 for any that is free.
        certificate: The file of the TLS certificate, for HTTPS.
        key: The file of its private key.
        connections: How many connections there may be at a time.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: str | None = None
    key: str | None = None
    connections: int = 500


class Server(uvicorn.Server):
    """A server that ends the streams of events before it waits for requests to end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        app: Any = self.config.app
        app.state.engine.hub.close()
        super().handle_exit(sig, frame)


def server(settings: Settings, listening: Listening) -> Server:
    """Make a server.

    Args:
        settings: What the service is to do.
        listening: Where it listens.

    Returns:
        The server; `run()` runs it until it is told to stop.

    Raises:
        ConfigurationError: If anybody could reach a service that asks for no tokens.
    """
    if settings.open and not is_loopback(listening.host):
        raise ConfigurationError(
            problem(
                "tokens for a service that other machines can reach",
                f"none, on {listening.host}",
                "Give a file of tokens, or listen on 127.0.0.1.",
            )
        )
    # A prediction is many small steps, and waits for its turn before each of them.
    sys.setswitchinterval(_SWITCH)
    config = uvicorn.Config(
        create_app(settings),
        host=listening.host,
        port=listening.port,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        limit_concurrency=listening.connections,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=15,
        ws="none",
    )
    return Server(config)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Write one JSON object per line to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)
