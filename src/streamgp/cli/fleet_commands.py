"""`streamgp fleet`: the options of its commands."""

import argparse
from typing import Any

from streamgp import configuration
from streamgp.cli import exits
from streamgp.cli.options import add_command, add_on_error, add_predicting, add_source, source

_RUN = """
The configuration is that of `streamgp run`. Every key has a model of its own, with that
configuration. The column of keys is neither an input nor a channel.

examples:
    streamgp fleet run ward.toml readings.csv --key patient
    streamgp fleet run ward.toml readings.csv --key patient --follow
    streamgp fleet run ward.toml readings.csv --key patient --store postgresql://localhost/ward

A run may be stopped at any moment, by Ctrl-C or by kill -9. The same command continues from the
last transaction, which has the models of all keys and how far the table was read.
"""
_PREDICT = """
examples:
    streamgp fleet predict ward.db hours.csv --key patient --out predicted.parquet
"""


def add(commands: Any) -> None:
    """Add the commands to what `add_subparsers` gave."""
    about = "stream a table of many keys into one model per key, and look at them"
    fleet = commands.add_parser("fleet", help=about, description=f"{about.capitalize()}.")
    own = fleet.add_subparsers(required=True, metavar="COMMAND")

    run = add_command(own, "run", _run, "stream a table of many keys into one model per key", _RUN)
    add_source(run)
    _add_key(run)
    run.add_argument(
        "--store", metavar="FILE", help="the store: a file or a URL (default: CONFIG.db)"
    )
    run.add_argument(
        "--live", type=int, default=1000, metavar="N",
        help="the number of models that stay in memory (default: 1000)",
    )  # fmt: skip

    inspect = add_command(own, "inspect", _inspect, "show what a store has learned")
    _add_store(inspect)
    inspect.add_argument("--key", metavar="KEY", help="show the model of this key")
    inspect.add_argument(
        "--most", type=int, default=20, metavar="N",
        help="list the N keys that were changed last (default: 20)",
    )  # fmt: skip

    what = "predict at the keys and inputs of a table"
    predict = add_command(own, "predict", _predict, what, _PREDICT)
    _add_store(predict)
    predict.add_argument("data", help="a table with keys and inputs, or - for standard input")
    _add_key(predict)
    add_on_error(predict)
    add_predicting(predict)


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", required=True, metavar="COLUMN", help="the column of keys")


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE", help="the store: a file or a URL")


def _run(options: argparse.Namespace) -> None:
    from streamgp.cli import fleet_run

    done = fleet_run.run(
        configuration.read(options.config),
        source(options),
        options.store or str(options.config.with_suffix(".db")),
        key=options.key,
        live=options.live,
    )
    if not done:
        exits.interrupted()


def _inspect(options: argparse.Namespace) -> None:
    from streamgp.cli import fleet_reading

    fleet_reading.show(options.store, options.key, options.most)


def _predict(options: argparse.Namespace) -> None:
    from streamgp.cli import fleet_reading

    fleet_reading.predict(
        options.store, options.data, options.out,
        key=options.key, channels=options.channel, level=options.level, format=options.format,
        on_error=options.on_error,
    )  # fmt: skip
