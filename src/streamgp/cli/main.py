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
from streamgp.cli import exits, fleet_commands, service_commands
from streamgp.cli.options import (
    add_channel,
    add_command,
    add_on_error,
    add_predicting,
    add_source,
    source,
)
from streamgp.errors import BudgetWarning, StreamGPError

_RUN = f"""
The configuration is a TOML file:

{config.EXAMPLE}
Without `channel` and `value`, every column that is not an input is a channel.

Dates are in ISO 8601, or in the `format` of [data], in the codes of strptime. A run stops at the
first row that cannot be used, before its batch is learned, and names the cell and the line. With
`on_error = "skip"` it leaves such rows out and counts them. An empty cell of a channel is not bad.

examples:
    streamgp run plant.toml readings.csv
    streamgp run plant.toml readings.parquet --model plant.sgp --predictions predicted.csv
    streamgp run plant.toml readings.csv --follow
    streamgp run plant.toml nats://server:4222/READINGS
    tail -n 0 -f readings.jsonl | streamgp run plant.toml - --format jsonl
    tail -n +1 -f readings.jsonl | streamgp run plant.toml - --format jsonl --skip-learned

A run may be stopped at any moment, by Ctrl-C or by kill -9. The same command continues from the
last snapshot.

A file is continued after the rows that were learned, so the model ends as if the run had never been
stopped. The file must begin with the same rows as before. It may have grown.

With --follow, a run waits at the end of the file for further rows. It goes on where it stopped,
also if the file was renamed and replaced by a new one meanwhile.

A feed that a broker has (kafka://broker:9092/topic, nats://server:4222/STREAM) is followed in the
same way: each message is learned once, however often the run is stopped.

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
    streamgp plot plant.sgp --forecast 2D --calibrated
    streamgp plot plant.sgp --channel temperature --components --forecast 7D
"""
_FORECAST = """
Lengths are durations such as 30min, 1h or 2D if the model's inputs are times, and numbers in the
units of the inputs otherwise. A whole number after --ahead counts steps.

examples:
    streamgp forecast plant.sgp --ahead 2D --every 1h
    streamgp forecast plant.sgp --ahead 48 --every 1h --calibrated --out tomorrow.parquet
"""
_SERVICE = ("serve", "token")  # commands that need the service's extra
_MOVED = ("reproduce", "bench")  # commands of the second distribution, `streamgp-lab`


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. An error ends it with one sentence and without a traceback.

    What it ends with is in `exits.Status`.

    Args:
        arguments: The words after `streamgp`; by default those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    name = next((word for word in arguments if not word.startswith("-")), None)
    if name in _MOVED:
        exits.fail(
            f"streamgp: the command `{name}` moved to `streamgp-lab {name}`, which you get with "
            "`pip install streamgp-lab`."
        )
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING)
    try:
        with _plain_warnings():
            options.command(options)
    except (StreamGPError, OSError) as error:
        exits.fail(f"streamgp: {error}")
    except ImportError as error:
        extra = "service" if name in _SERVICE else "cli"
        remedy = f". Run `pip install 'streamgp[{extra}]'`."
        remedy = "" if "pip install" in str(error) else remedy
        exits.fail(f"streamgp: {error}{remedy}")
    except KeyboardInterrupt:
        exits.interrupted()


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
        prog="streamgp",
        description="Gaussian processes that learn from a stream. Each command has --help.",
        epilog=exits.explained(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=streamgp.__version__)
    parser.add_argument("-v", "--verbose", action="store_true", help="log every update")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, action: Callable[[argparse.Namespace], None], about: str, more: str = ""
    ) -> argparse.ArgumentParser:
        return add_command(commands, name, action, about, more)

    demo = add("demo", _demo, "stream three channels of an airport through a model and draw them")
    demo.add_argument(
        "--out", type=Path, default=Path("streamgp-demo.png"), help="the file of the picture"
    )
    demo.add_argument(
        "--seed", type=int, default=0, help="the seed that chooses the held-out hours"
    )

    run = add("run", _run, "stream a table into a model", _RUN)
    add_source(run)
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

    predict = add("predict", _predict, "predict at the inputs of a table", _PREDICT)
    _add_model(predict)
    predict.add_argument("data", help="a table with the input columns, or - for standard input")
    add_on_error(predict)
    add_predicting(predict)

    forecast = add("forecast", _forecast, "predict what comes after the latest input", _FORECAST)
    _add_model(forecast)
    forecast.add_argument(
        "--ahead", required=True, metavar="LENGTH", help="how far to go, or a number of steps"
    )
    forecast.add_argument("--every", required=True, metavar="LENGTH", help="the length of a step")
    add_predicting(forecast)
    _add_calibrated(forecast)

    inspect = add("inspect", _inspect, "show channels, hyperparameters and scores of a model")
    _add_model(inspect)

    plot = add("plot", _plot, "draw the predictions of a model", _PLOT)
    _add_model(plot)
    add_channel(plot)
    plot.add_argument(
        "--forecast", metavar="LENGTH", help="draw what comes after the latest input, so far ahead"
    )
    plot.add_argument("--components", action="store_true", help="draw what a channel is the sum of")
    _add_calibrated(plot)
    plot.add_argument(
        "--out", type=Path, default=Path("streamgp.png"), metavar="FILE",
        help="the file of the picture (default: streamgp.png)",
    )  # fmt: skip
    fleet_commands.add(commands)
    service_commands.add(commands)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL.sgp", help="the file of a saved model")


def _add_calibrated(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--calibrated", action="store_true",
        help="widen or narrow the intervals of forecasts by what the stream has shown",
    )  # fmt: skip


# Each command imports what it needs: `streamgp --help` should not wait for pandas.


def _demo(options: argparse.Namespace) -> None:
    from streamgp.cli import demo

    demo.run(out=options.out, seed=options.seed)


def _run(options: argparse.Namespace) -> None:
    from streamgp.cli import run

    done = run.run(
        config.read(options.config),
        source(options),
        options.model or options.config.with_suffix(".sgp"),
        out=options.predictions,
        resume=not options.restart,
    )
    if not done:
        exits.interrupted()


def _predict(options: argparse.Namespace) -> None:
    from streamgp.cli import predict

    predict.run(
        options.model, options.data, options.out,
        channels=options.channel, level=options.level, format=options.format,
        on_error=options.on_error,
    )  # fmt: skip


def _forecast(options: argparse.Namespace) -> None:
    from streamgp.cli import forecast

    forecast.run(
        options.model, options.ahead, options.every, options.out, channels=options.channel,
        level=options.level, calibrated=options.calibrated, format=options.format,
    )  # fmt: skip


def _inspect(options: argparse.Namespace) -> None:
    from streamgp.cli import inspect

    inspect.run(options.model)


def _plot(options: argparse.Namespace) -> None:
    from streamgp.cli import plot

    plot.run(
        options.model, options.out, channels=options.channel, forecast=options.forecast,
        calibrated=options.calibrated, components=options.components,
    )  # fmt: skip
