"""`streamgp`: the commands and their options."""

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import streamgp
from streamgp.cli import config
from streamgp.errors import StreamGPError

_RUN = f"""
The configuration is a TOML file:

{config.EXAMPLE}
examples:
    streamgp run plant.toml readings.csv
    streamgp run plant.toml readings.parquet --model plant.sgp --predictions predicted.csv
    tail -f readings.jsonl | streamgp run plant.toml - --format jsonl

Break it off as you like (Ctrl-C, kill -9): the same command goes on after the last snapshot, and
the model ends as if nothing had happened. From standard input, feed the same rows again: those that
were learned are skipped.
"""
_REPRODUCE = """
Writes a table (Markdown), everything as JSON, and pictures for each experiment, and index.html.

examples:
    streamgp reproduce --list
    streamgp reproduce streaming banana --seeds 10
    streamgp reproduce all --out results
    streamgp reproduce mocap --data folder-with-bvh-file
"""
_BENCH = """
Peers (GPyTorch, GPflow) are installed into environments of their own the first time. Writes a table
(Markdown), everything as JSON, and pictures for each comparison.

examples:
    streamgp bench --list
    streamgp bench samples --repeats 5
    streamgp bench all --out measured
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


def main(arguments: list[str] | None = None) -> None:
    """The entry point. What is wrong is said in a sentence, without a traceback."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING)
    streamgp.use_compilation_cache()
    try:
        options.command(options)
    except (StreamGPError, OSError, ImportError) as error:
        sys.exit(f"streamgp: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


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

    demo = add("demo", _demo, "stream three channels of an airport through a model and look")
    demo.add_argument("--out", type=Path, default=Path("streamgp-demo.png"), help="the picture")
    demo.add_argument("--seed", type=int, default=0, help="of the held-out hours")

    reproduce = add("reproduce", _reproduce, "run the experiments of the paper", _REPRODUCE)
    reproduce.add_argument("names", nargs="*", default=["all"], help="experiments, or all")
    reproduce.add_argument("--list", action="store_true", help="name the experiments, and stop")
    reproduce.add_argument("--seeds", type=int, default=1, help="how many")
    reproduce.add_argument("--jobs", type=int, default=2, help="experiments at a time")
    reproduce.add_argument("--data", type=Path, help="a folder with files of your own")
    reproduce.add_argument("--out", type=Path, default=Path("reproduced"), help="the folder")
    reproduce.add_argument("--share", type=float, default=1.0, help="of the data, for a quick look")

    bench = add("bench", _bench, "measure streamgp beside its peers", _BENCH)
    bench.add_argument("names", nargs="*", default=["all"], help="comparisons, or all")
    bench.add_argument("--list", action="store_true", help="name the comparisons, and stop")
    bench.add_argument("--repeats", type=int, default=3, help="how often each is measured")
    bench.add_argument("--out", type=Path, default=Path("measured"), help="the folder")
    bench.add_argument("--share", type=float, default=1.0, help="of the data, for a quick look")
    bench.add_argument(
        "--peers", type=Path, default=Path.home() / ".cache" / "streamgp" / "peers",
        help="where the peers' environments are",
    )  # fmt: skip

    run = add("run", _run, "stream a table into a model", _RUN)
    run.add_argument("config", type=Path, metavar="CONFIG.toml")
    run.add_argument("data", help="a .csv, .parquet or .jsonl file, or - for standard input")
    run.add_argument("--model", type=Path, help="the snapshot (default: CONFIG.sgp)")
    run.add_argument(
        "--predictions", type=Path, metavar="FILE",
        help="what was expected of every row before its batch was learned (.csv, .jsonl, .parquet)",
    )  # fmt: skip
    run.add_argument("--restart", action="store_true", help="do not go on from a snapshot")
    _add_format(run)

    predict = add("predict", _predict, "predict at the inputs of a table", _PREDICT)
    _add_model(predict)
    predict.add_argument("data", help="a table with the input columns, or - for standard input")
    predict.add_argument("--out", default="-", help="a file, or - for standard output (default)")
    predict.add_argument("--channel", action="append", help="only this one; may be repeated")
    predict.add_argument("--level", type=float, default=0.95, help="of the intervals")
    _add_format(predict)

    inspect = add("inspect", _inspect, "show channels, hyperparameters and scores of a model")
    _add_model(inspect)

    plot = add("plot", _plot, "draw what a model knows", _PLOT)
    _add_model(plot)
    plot.add_argument("--channel", action="append", help="only this one; may be repeated")
    plot.add_argument("--out", type=Path, default=Path("streamgp.png"), help="the picture")
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL.sgp")


def _add_format(parser: argparse.ArgumentParser) -> None:
    kinds = ("csv", "jsonl", "parquet")
    parser.add_argument("--format", choices=kinds, help="of the data, if its name does not say")


# Each command imports what it needs: `streamgp --help` should not wait for pandas.


def _demo(options: argparse.Namespace) -> None:
    from streamgp.cli import demo

    demo.run(out=options.out, seed=options.seed)


def _reproduce(options: argparse.Namespace) -> None:
    from streamgp.cli import reproduce

    if options.list:
        reproduce.list_all()
        return
    reproduce.run(
        options.names, options.out, seeds=options.seeds, share=options.share, data=options.data,
        jobs=options.jobs,
    )  # fmt: skip


def _bench(options: argparse.Namespace) -> None:
    from streamgp.cli import bench

    if options.list:
        bench.list_all()
        return
    bench.run(
        options.names, options.out, peers=options.peers, repeats=options.repeats,
        share=options.share,
    )  # fmt: skip


def _run(options: argparse.Namespace) -> None:
    from streamgp.cli import run

    done = run.run(
        config.read(options.config),
        options.data,
        options.model or options.config.with_suffix(".sgp"),
        out=options.predictions,
        resume=not options.restart,
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
    from streamgp.cli import picture

    picture.run(options.model, options.out, channels=options.channel)
