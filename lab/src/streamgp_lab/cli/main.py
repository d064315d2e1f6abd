"""`streamgp-lab`: the commands and their options."""

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import streamgp
from streamgp.errors import StreamGPError

_REPRODUCE = """
For each experiment it writes tables (NAME.md), all numbers (NAME.json) and pictures (.png, .svg),
and one page over all of them (index.html).

examples:
    streamgp-lab reproduce --list
    streamgp-lab reproduce streaming banana --seeds 10
    streamgp-lab reproduce all --out results
    streamgp-lab reproduce mocap --data folder-with-bvh-file
"""
_BENCH = """
For each benchmark it writes tables (NAME.md), all numbers (NAME.json) and pictures (.png, .svg),
and one page over all of them (index.html). The first run installs GPyTorch, GPflow and tinygp,
each into an environment of its own.

examples:
    streamgp-lab bench --list
    streamgp-lab bench samples --repeats 5
    streamgp-lab bench start growth --against folder-of-another-version
    streamgp-lab bench core --against ca6adae
    streamgp-lab bench over_time --full --against ca6adae
    streamgp-lab bench record --against folder-of-another-version
    streamgp-lab bench long --full
    streamgp-lab bench dimensions --own --only powerplant --only winequality
    streamgp-lab bench all --out measured
"""
_CHECK = """
examples:
    streamgp-lab check --list
    streamgp-lab check all
    streamgp-lab check pruning --seeds 2
    streamgp-lab check soak --seconds 600
"""
_SOAK = """
A failure is shown with the command that repeats it, such as the last one.

examples:
    streamgp-lab check soak --updates 100000
    streamgp-lab check soak --seconds 600
    streamgp-lab check soak --seed 3 --only 2 17
"""

QUICK = ("pruning", "coverage", "river_stream")  # what `check all` runs, in this order
CHECKS = {
    "pruning": "compare rules for dropping inducing points when the budget is full",
    "coverage": "measure how often intervals contain held-out data, for every likelihood",
    "river_stream": "compare the river estimator with river's own models on a stream of polls",
    "kills": "kill `streamgp run` at random moments and compare its results with a run left alone",
    "large": "learn a batch of many rows on the dense engine, and measure time and memory",
    "choosing": "draw the pictures of docs/choosing.md and docs/forecasting.md into docs/images",
    "licences": "write docs/licences.md, the licences of what the library needs",
    "pages": "run the tutorials, and keep their pictures in docs/images",
    "placement": "draw the pictures of docs/placement.md into docs/images",
    "service_kills": "kill the service under load and compare its models with undisturbed ones",
    "service_load": "measure the service on loopback: latencies, requests per second, memory",
    "service_fuzz": "send thousands of requests that the description of the service allows",
    "sktime_updates": "compare updates of the sktime forecaster with fitting again",
    "spark": "measure a micro-batch of many keys in Spark beside an empty processor",
    "store_kills": "kill `streamgp fleet run` at random moments and look at every key of its store",
    "soak": "stream random data into models of every likelihood, and look for failures",
    "wild": "stream the random data of soak once into a model of each likelihood",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. An error ends it with one sentence and without a traceback.

    Args:
        arguments: The words after `streamgp-lab`; by default those of the process.
    """
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING)
    try:
        options.command(options)
    except (StreamGPError, OSError, ImportError) as error:
        sys.exit(f"streamgp-lab: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamgp-lab",
        description="Experiments, benchmarks and long checks of streamgp.",
    )
    parser.add_argument("--version", action="version", version=streamgp.__version__)
    parser.add_argument("-v", "--verbose", action="store_true", help="log every update")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    reproduce = _add(
        commands, "reproduce", "run the experiments of the paper", _REPRODUCE, _reproduce
    )
    reproduce.add_argument(
        "names", nargs="*", metavar="NAME", default=["all"],
        help="names of experiments, or all (default)",
    )  # fmt: skip
    reproduce.add_argument("--list", action="store_true", help="list the experiments and stop")
    reproduce.add_argument(
        "--seeds", type=int, default=1, help="the number of seeds of each (default: 1)"
    )
    reproduce.add_argument(
        "--jobs", type=int, default=2, help="how many experiments run at a time (default: 2)"
    )
    reproduce.add_argument(
        "--data", type=Path, metavar="FOLDER",
        help="a folder with data files for mocap and ssgp, which otherwise use other data",
    )  # fmt: skip
    _add_out(reproduce, "reproduced")

    bench = _add(
        commands, "bench", "measure streamgp and other libraries on the same data", _BENCH, _bench
    )
    bench.add_argument(
        "names", nargs="*", metavar="NAME", default=["all"],
        help="names of benchmarks, or all (default)",
    )  # fmt: skip
    bench.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    bench.add_argument(
        "--repeats", type=int, default=3,
        help="how often each contender is measured; long races run only once (default: 3)",
    )  # fmt: skip
    bench.add_argument(
        "--peers", type=Path, metavar="FOLDER",
        default=Path.home() / ".cache" / "streamgp" / "peers",
        help="the folder for the environments of other libraries (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--against", metavar="VERSION",
        help="another version of streamgp, a folder or a revision of this repository, which "
        "start, growth, core and over_time measure too, and record instead",
    )  # fmt: skip
    bench.add_argument(
        "--full", action="store_true",
        help="with long: also its longest streams and a million samples, which take many minutes",
    )  # fmt: skip
    bench.add_argument(
        "--only", action="append", default=[], metavar="TOPIC",
        help="this topic or race, such as cost of long, or powerplant of dimensions; may be given "
        "several times",
    )  # fmt: skip
    bench.add_argument(
        "--own", action="store_true",
        help="leave out other libraries, which then need not be installed",
    )  # fmt: skip
    _add_out(bench, "measured")

    check = _add(commands, "check", "run long checks of streamgp", _CHECK, _list_checks)
    check.add_argument("--list", action="store_true", help="list the checks and stop (default)")
    _add_checks(check.add_subparsers(metavar="NAME"))
    return parser


def _add_checks(checks: argparse._SubParsersAction) -> None:
    parsers = {name: _add(checks, name, about, "", _check) for name, about in CHECKS.items()}
    parsers["pruning"].add_argument(
        "--seeds", type=int, default=6, help="the number of seeds (default: 6)"
    )
    kills = parsers["kills"]
    kills.add_argument("--kills", type=int, default=50, help="the number of kills (default: 50)")
    kills.add_argument("--rows", type=int, default=3000, help="rows of the table (default: 3000)")
    service = parsers["service_kills"]
    service.add_argument("--kills", type=int, default=200, help="how many kills (default: 200)")
    service.add_argument("--seed", type=int, default=0, help="of the moments (default: 0)")
    load = parsers["service_load"]
    load.add_argument("--seconds", type=float, default=5, help="per measurement (default: 5)")
    load.add_argument("--soak", type=float, default=0, help="seconds of soaking after it (0)")
    load.add_argument(
        "--readers", type=int, default=44, help="who ask for the largest prediction at once (44)"
    )
    parsers["service_fuzz"].add_argument(
        "--examples", type=int, default=100, help="requests per operation (default: 100)"
    )
    parsers["spark"].add_argument(
        "--keys", type=int, default=200, help="how many models (default: 200)"
    )
    kills = parsers["store_kills"]
    kills.add_argument("--kills", type=int, default=200, help="the number of kills (default: 200)")
    kills.add_argument("--rows", type=int, default=1000, help="rows of a table (default: 1000)")
    kills.add_argument("--keys", type=int, default=16, help="keys of a table (default: 16)")
    parsers["large"].add_argument(
        "--rows", type=int, default=100_000, help="rows of the batch (default: 100000)"
    )
    soak = parsers["soak"]
    soak.epilog = _SOAK
    soak.add_argument(
        "--updates",
        type=int,
        help="the number of updates (default: 100000, unless --seconds is given)",
    )
    soak.add_argument("--seconds", type=float, help="how long it runs, instead of --updates")
    soak.add_argument("--seed", type=int, default=0, help="the seed of all streams (default: 0)")
    soak.add_argument(
        "--only", type=int, nargs=2, metavar=("KIND", "LIFE"), help="repeat a single stream"
    )
    parsers["wild"].add_argument(
        "--seed", type=int, default=0, help="the seed of all streams (default: 0)"
    )
    for name, parser in parsers.items():
        parser.set_defaults(check=name)
    _add(checks, "all", f"run the quick ones: {', '.join(QUICK)}", "", _check_all)


def _add(
    commands: argparse._SubParsersAction,
    name: str,
    about: str,
    more: str,
    action: Callable[[argparse.Namespace], None],
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.set_defaults(command=action)
    return command


def _add_out(parser: argparse.ArgumentParser, folder: str) -> None:
    parser.add_argument(
        "--share", type=float, default=1.0,
        help="the share of the data to use, for a quick look (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=Path(folder), metavar="FOLDER",
        help="the folder of the results (default: %(default)s)",
    )  # fmt: skip


# Each command imports what it needs, so that `streamgp-lab --help` is fast.


def _reproduce(options: argparse.Namespace) -> None:
    from streamgp_lab.cli import reproduce

    if options.list:
        reproduce.list_all()
        return
    reproduce.run(
        options.names, options.out, seeds=options.seeds, share=options.share, data=options.data,
        jobs=options.jobs,
    )  # fmt: skip


def _bench(options: argparse.Namespace) -> None:
    from streamgp_lab.cli import bench

    if options.list:
        bench.list_all()
        return
    bench.run(
        options.names, options.out, peers=options.peers, repeats=options.repeats,
        share=options.share, against=options.against, full=options.full, only=options.only,
        own=options.own,
    )  # fmt: skip


def _list_checks(options: argparse.Namespace) -> None:
    from streamgp_lab.cli import check

    check.list_all(CHECKS)


def _check(options: argparse.Namespace) -> None:
    from streamgp_lab.cli import check

    outer = ("command", "check", "list", "verbose")
    settings = {name: value for name, value in vars(options).items() if name not in outer}
    check.run(options.check, **settings)


def _check_all(options: argparse.Namespace) -> None:
    from streamgp_lab.cli import check

    for name in QUICK:
        check.run(name)
