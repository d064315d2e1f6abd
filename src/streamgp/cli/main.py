"""`streamgp`: the commands and their options."""

import argparse
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamgp
from streamgp import configuration as config
from streamgp.errors import BudgetWarning, StreamGPError

_RUN = f"""
The configuration is a TOML file:

{config.EXAMPLE}
Without `channel` and `value`, every column that is not an input is a channel.

examples:
    streamgp run plant.toml readings.csv
    streamgp run plant.toml readings.parquet --model plant.sgp --predictions predicted.csv
    tail -n 0 -f readings.jsonl | streamgp run plant.toml - --format jsonl
    tail -n +1 -f readings.jsonl | streamgp run plant.toml - --format jsonl --skip-learned

A run may be stopped at any moment, by Ctrl-C or by kill -9. The same command continues from the
last snapshot.

A file is continued after the rows that were learned, so the model ends as if the run had never been
stopped. The file must begin with the same rows as before. It may have grown.

From standard input every row is learned, also by a run that continues. If the input starts again
with the first row, as in the last example, use --skip-learned: it skips as many rows as the
snapshot has learned.
"""
_PREDICT = """
examples:
    streamgp predict plant.sgp hours.csv --out predicted.parquet
    streamgp predict plant.sgp - --channel temperature < hours.csv
"""
_PLOT = """
examples:
    streamgp plot plant.sgp --out plant.png
    streamgp plot plant.sgp --channel temperature --out temperature.svg
"""
_SERVE = """
examples:
    streamgp token tokens.txt --name plant --scopes read,write,admin
    streamgp serve --store plant.db --token-file tokens.txt
    streamgp serve --store plant.db --no-tokens
    streamgp serve --demo
"""
_SERVICE = ("serve", "token")  # commands that need the service's extra
_MOVED = ("reproduce", "bench")  # commands of the second distribution, `streamgp-lab`


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. An error ends it with one sentence and without a traceback.

    Args:
        arguments: The words after `streamgp`; by default those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    name = next((word for word in arguments if not word.startswith("-")), None)
    if name in _MOVED:
        sys.exit(
            f"streamgp: the command `{name}` moved to `streamgp-lab {name}`, which you get with "
            "`pip install streamgp-lab`."
        )
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING)
    try:
        with _plain_warnings():
            options.command(options)
    except (StreamGPError, OSError) as error:
        sys.exit(f"streamgp: {error}")
    except ImportError as error:
        extra = "service" if name in _SERVICE else "cli"
        remedy = f". Run `pip install 'streamgp[{extra}]'`."
        remedy = "" if "pip install" in str(error) else remedy
        sys.exit(f"streamgp: {error}{remedy}")
    except KeyboardInterrupt:
        sys.exit(130)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print the library's warnings as sentences, without the line of code that raised them."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, BudgetWarning):
                print(f"streamgp: {message}", file=sys.stderr)
            else:
                usual(message, category, *place, **options)

        warnings.showwarning = show
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamgp", description="Continual multi-task Gaussian processes."
    )
    parser.add_argument("--version", action="version", version=streamgp.__version__)
    parser.add_argument("-v", "--verbose", action="store_true", help="log every update")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, action: Callable[[argparse.Namespace], None], about: str, more: str = ""
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.set_defaults(command=action)
        return command

    demo = add("demo", _demo, "stream three channels of an airport through a model and draw them")
    demo.add_argument(
        "--out", type=Path, default=Path("streamgp-demo.png"), help="the file of the picture"
    )
    demo.add_argument(
        "--seed", type=int, default=0, help="the seed that chooses the held-out hours"
    )

    run = add("run", _run, "stream a table into a model", _RUN)
    run.add_argument("config", type=Path, metavar="CONFIG.toml", help="the configuration")
    run.add_argument("data", help="a .csv, .parquet or .jsonl file, or - for standard input")
    run.add_argument(
        "--model", type=Path, metavar="FILE", help="the file of the snapshot (default: CONFIG.sgp)"
    )
    run.add_argument(
        "--predictions", type=Path, metavar="FILE",
        help="write what the model predicted for every row before it learned the row's batch "
        "(.csv, .jsonl, .parquet)",
    )  # fmt: skip
    run.add_argument(
        "--restart", action="store_true", help="ignore the snapshot and start a new model"
    )
    run.add_argument(
        "--skip-learned", action="store_true",
        help="skip as many rows of standard input as the snapshot has learned; files are always "
        "continued after those rows",
    )  # fmt: skip
    _add_format(run)

    predict = add("predict", _predict, "predict at the inputs of a table", _PREDICT)
    _add_model(predict)
    predict.add_argument("data", help="a table with the input columns, or - for standard input")
    predict.add_argument(
        "--out", default="-", metavar="FILE", help="a file, or - for standard output (default)"
    )
    _add_channel(predict)
    predict.add_argument(
        "--level", type=float, default=0.95, help="the probability of the intervals (default: 0.95)"
    )
    _add_format(predict)

    inspect = add("inspect", _inspect, "show channels, hyperparameters and scores of a model")
    _add_model(inspect)

    plot = add("plot", _plot, "draw the predictions of a model", _PLOT)
    _add_model(plot)
    _add_channel(plot)
    plot.add_argument(
        "--out", type=Path, default=Path("streamgp.png"), metavar="FILE",
        help="the file of the picture (default: streamgp.png)",
    )  # fmt: skip
    _add_service(add)
    return parser


def _add_service(add: Callable[..., argparse.ArgumentParser]) -> None:
    serve = add("serve", _serve, "learn and predict over HTTP, with a page to watch", _SERVE)
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
    serve.add_argument("--ssl-certfile", metavar="FILE", help="the TLS certificate")
    serve.add_argument("--ssl-keyfile", metavar="FILE", help="the key of the TLS certificate")
    serve.add_argument(
        "--demo", action="store_true", help="feed the stream of an airport to a model, to watch"
    )
    serve.add_argument(
        "--pace", type=float, default=1.0,
        help="seconds between two batches of the demonstration (default: 1)",
    )  # fmt: skip

    token = add("token", _token, "make a token for a service and print it once", _SERVE)
    token.add_argument("file", type=Path, help="the file that its hash is added to")
    token.add_argument("--name", required=True, help="who will have it, for the logs")
    token.add_argument("--scopes", default="read", help="some of read,write,admin (default: read)")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL.sgp", help="the file of a saved model")


def _add_channel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--channel", action="append", metavar="NAME",
        help="use only this channel; the option may be repeated",
    )  # fmt: skip


def _add_format(parser: argparse.ArgumentParser) -> None:
    kinds = ("csv", "jsonl", "parquet")
    parser.add_argument(
        "--format", choices=kinds, help="the format of the data, if the file's name does not tell"
    )


# Each command imports what it needs: `streamgp --help` should not wait for pandas.


def _demo(options: argparse.Namespace) -> None:
    from streamgp.cli import demo

    demo.run(out=options.out, seed=options.seed)


def _run(options: argparse.Namespace) -> None:
    from streamgp.cli import run

    done = run.run(
        config.read(options.config),
        options.data,
        options.model or options.config.with_suffix(".sgp"),
        out=options.predictions,
        resume=not options.restart,
        skip_learned=options.skip_learned,
        format=options.format,
    )
    if not done:
        sys.exit(130)


def _predict(options: argparse.Namespace) -> None:
    from streamgp.cli import predict

    predict.run(
        options.model, options.data, options.out,
        channels=options.channel, level=options.level, format=options.format,
    )  # fmt: skip


def _inspect(options: argparse.Namespace) -> None:
    from streamgp.cli import inspect

    inspect.run(options.model)


def _plot(options: argparse.Namespace) -> None:
    from streamgp.cli import plot

    plot.run(options.model, options.out, channels=options.channel)


def _serve(options: argparse.Namespace) -> None:
    from streamgp.cli import serve
    from streamgp.service import Listening, Settings, read_tokens

    listening = Listening(options.host, options.port, options.ssl_certfile, options.ssl_keyfile)
    if options.demo:
        serve.demo(listening, options.pace)
        return
    tokens = () if options.token_file is None else read_tokens(options.token_file)
    settings = Settings(options.store, tokens, open=options.no_tokens, cache=options.cache)
    serve.run(settings, listening)


def _token(options: argparse.Namespace) -> None:
    from streamgp.cli import serve

    serve.token(options.file, options.name, options.scopes.split(","))
