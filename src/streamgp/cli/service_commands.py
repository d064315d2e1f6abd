"""`streamgp serve` and `streamgp token`: their options."""

import argparse
from pathlib import Path
from typing import Any

from streamgp.cli.options import add_command, add_source_config

_EXAMPLES = """
examples:
    streamgp token tokens.txt --name plant --scopes read,write,admin
    streamgp serve --store plant.db --token-file tokens.txt
    streamgp serve --store plant.db --no-tokens
    streamgp serve --demo
"""


def add(commands: Any) -> None:
    """Add `serve` and `token`."""
    serve = add_command(
        commands, "serve", _serve, "learn and predict over HTTP, with a page to watch", _EXAMPLES
    )
    serve.add_argument(
        "--store", default="streamgp.db", metavar="FILE",
        help="the file of the models, or the URL of a PostgreSQL database (default: streamgp.db)",
    )  # fmt: skip
    serve.add_argument("--host", default="127.0.0.1", help="the address (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8080, help="the port (default: 8080)")
    serve.add_argument(
        "--token-file", type=Path, metavar="FILE", help="the tokens that `streamgp token` made"
    )
    serve.add_argument(
        "--no-tokens", action="store_true",
        help="let every program of this machine do everything; only on a loopback address",
    )  # fmt: skip
    serve.add_argument("--cache", type=int, default=64, help="models in memory (default: 64)")
    serve.add_argument(
        "--keep-answers", default="7D", metavar="LENGTH",
        help="how long a request that is sent again gets its first answer: 30min, 12h, 7D and so "
        "on (default: 7D)",
    )  # fmt: skip
    serve.add_argument(
        "--source", action="append", default=[], metavar="URL",
        help="a feed that a model follows: file:///readings.jsonl?model=plant, "
        "kafka://broker:9092/topic?model=plant or nats://server:4222/STREAM?model=plant; "
        "the option may be repeated",
    )  # fmt: skip
    add_source_config(serve)
    serve.add_argument("--ssl-certfile", metavar="FILE", help="the TLS certificate")
    serve.add_argument("--ssl-keyfile", metavar="FILE", help="the key of the TLS certificate")
    serve.add_argument(
        "--demo", action="store_true", help="feed the stream of an airport to a model, to watch"
    )
    serve.add_argument(
        "--pace", type=float, default=1.0,
        help="seconds between two batches of the demonstration (default: 1)",
    )  # fmt: skip

    token = add_command(
        commands, "token", _token, "make a token for a service and print it once", _EXAMPLES
    )
    token.add_argument("file", type=Path, help="the file that its hash is added to")
    token.add_argument("--name", required=True, help="who will have it, for the logs")
    token.add_argument("--scopes", default="read", help="some of read,write,admin (default: read)")


def _serve(options: argparse.Namespace) -> None:
    from streamgp.cli import serve
    from streamgp.data import durations
    from streamgp.service import Listening, Settings, read_tokens

    listening = Listening(options.host, options.port, options.ssl_certfile, options.ssl_keyfile)
    if options.demo:
        serve.demo(listening, options.pace)
        return
    tokens = () if options.token_file is None else read_tokens(options.token_file)
    settings = Settings(
        options.store,
        tokens,
        open=options.no_tokens,
        cache=options.cache,
        keep_answers=durations.difference(options.keep_answers),
        sources=tuple(options.source),
        source_settings=options.source_config,
    )
    serve.run(settings, listening)


def _token(options: argparse.Namespace) -> None:
    from streamgp.cli import serve

    serve.token(options.file, options.name, options.scopes.split(","))
