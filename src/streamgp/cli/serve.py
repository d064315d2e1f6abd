"""`streamgp serve`: a service that learns and predicts over HTTP."""

import signal
import sys
import tempfile
import threading
from pathlib import Path

from streamgp.errors import ConfigurationError, problem
from streamgp.service import Listening, Settings, append_token, log_to_stderr, new_token, server


def run(settings: Settings, listening: Listening) -> None:
    """Serve until the process is told to stop.

    Args:
        settings: What the service does.
        listening: Where it listens.

    Raises:
        ConfigurationError: If it has no tokens and was not told to do without.
    """
    if not settings.tokens and not settings.open:
        raise ConfigurationError(
            problem(
                "a file of tokens",
                "none",
                "Make one with `streamgp token FILE --name NAME --scopes read,write,admin` and "
                "pass it as --token-file, or, on this machine alone, pass --no-tokens.",
            )
        )
    log_to_stderr()
    serving = server(settings, listening)
    print(f"streamgp serves {settings.store} at {address(listening)}", file=sys.stderr)
    serving.run()


def demo(listening: Listening, seconds: float) -> None:
    """Serve, and feed the airport's stream to a model that can be watched.

    Args:
        listening: Where to listen.
        seconds: The time between two batches.

    Raises:
        ImportError: If the package with the data is missing.
    """
    from streamgp.cli import serve_demo

    rows = serve_demo.batches()  # if the data are missing, say so before anything starts
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "demo.db", open=True)
        serving = server(settings, listening)
        stop = threading.Event()
        url = address(listening)
        feeder = threading.Thread(
            target=serve_demo.feed, args=(url, rows, seconds, stop), daemon=True
        )
        print(f"Open {url} in a browser. Ctrl-C ends the demonstration.", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the folder is removed
        feeder.start()
        try:
            serving.run()
        finally:
            stop.set()
            feeder.join(10)


def address(listening: Listening) -> str:
    """The address that a browser needs."""
    scheme = "http" if listening.certificate is None else "https"
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    return f"{scheme}://{host}:{listening.port}/"


def token(path: Path, name: str, scopes: list[str]) -> None:
    """Draw a token, add its hash to a file, and print the token, this once."""
    secret, kept = new_token(name, scopes)
    append_token(path, kept)
    print(secret)
