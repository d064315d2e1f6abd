"""`streamgp`: the commands and their options."""

import argparse
from pathlib import Path

import jax

import streamgp
from streamgp.cli import demo


def main(arguments: list[str] | None = None) -> None:
    """The entry point."""
    parser = argparse.ArgumentParser(
        prog="streamgp", description="Continual multi-task Gaussian processes."
    )
    parser.add_argument("--version", action="version", version=streamgp.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo_parser = commands.add_parser(
        "demo",
        help="stream three channels of an airport through a model, and look at what it kept",
        description=demo.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo_parser.add_argument(
        "--out", type=Path, default=Path("streamgp-demo.png"), help="the picture to write"
    )
    demo_parser.add_argument("--seed", type=int, default=0, help="of the held-out hours")
    options = parser.parse_args(arguments)
    use_compilation_cache()
    demo.run(out=options.out, seed=options.seed)


def use_compilation_cache() -> None:
    """Keep compiled programs between processes, unless the user has chosen a place already."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update(
            "jax_compilation_cache_dir", str(Path.home() / ".cache" / "streamgp" / "jax")
        )
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
