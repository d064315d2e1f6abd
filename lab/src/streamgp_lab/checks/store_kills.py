"""Kill `streamgp fleet run` at random moments, and look at its store after every kill.

A table with rows of many keys streams into a store, in batches. The run is a process of its own,
which is killed with SIGKILL after a random time and started again, until it ends. After every kill
the store says how many rows were learned. Every key must then have the state that it has after so
many rows in a run left alone: nothing that was learned is lost, and nothing is learned twice.

States of the dense engine are compared byte for byte. A chain that was loaded continues up to
rounding, so chains are compared by their counts and their predictions.
"""

import contextlib
import io
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp import configuration
from streamgp.cli import fleet_run
from streamgp.cli.feeds import Source
from streamgp_lab.checks import command
from streamgp_lab.progress import bar

CONFIG = """
[channels]
level = { kind = "Gaussian", noise = 0.3 }
load = { kind = "Gaussian", noise = 0.3 }

[data]
inputs = "time"

[model]
latents = [{ kind = "KERNEL", lengthscale = 2.0 }]
learning = false
engine = "ENGINE"

[stream]
batch = 50
snapshot = 0
"""
BATCH = 50
LIVE = 8  # fewer than there are keys, so that models come and go
PLACES = np.linspace(0.0, 8.0, 5)

States = dict[str, bytes]


def table(rows: int, keys: int, seed: int) -> pd.DataFrame:
    """Rows of random keys, each of which has times of its own."""
    generator = np.random.default_rng(seed)
    key = generator.integers(keys, size=rows)
    time_of = pd.Series(generator.exponential(0.5, rows)).groupby(key).cumsum()
    values = np.sin(time_of.to_numpy())[:, None] + 0.3 * generator.normal(size=(rows, 2))
    frame = pd.DataFrame({"key": [f"key {k}" for k in key], "time": time_of})
    frame[["level", "load"]] = values
    return frame


def settings(engine: str) -> str:
    """The configuration of a run with that engine."""
    kernel = "RBF" if engine == "dense" else "Matern32"
    return CONFIG.replace("ENGINE", engine).replace("KERNEL", kernel)


def learn(folder: Path, store: str) -> None:
    """The run, quietly."""
    with contextlib.redirect_stderr(io.StringIO()):
        fleet_run.run(
            configuration.read(folder / "run.toml"), Source(str(folder / "data.csv")),
            str(folder / store), key="key", live=LIVE,
        )  # fmt: skip


def ends(folder: Path, limit: float | None = None) -> bool:
    """Whether a run in a process of its own ends within the limit. Otherwise it is killed."""
    process = multiprocessing.get_context("fork").Process(target=learn, args=(folder, "killed.db"))
    process.start()
    process.join(limit)
    if process.exitcode is None:
        process.kill()
        process.join()
        return False
    assert process.exitcode == 0, f"the run ended with {process.exitcode}"
    return True


def history(folder: Path) -> list[States]:
    """The state of every key after each number of batches, of a run left alone."""
    frame = pd.read_csv(folder / "data.csv")
    model = configuration.read(folder / "run.toml").build()
    fleet = sgp.Fleet(model, store=folder / "alone.db", live=LIVE)
    found: list[States] = [{}]
    for begin in range(0, len(frame), BATCH):
        report = fleet.update(frame[begin : begin + BATCH], key="key", inputs="time")
        found.append({**found[-1], **{str(key): fleet[key].to_bytes() for key in report.keys}})
    fleet.close()
    return found


def differences(folder: Path, states: list[States]) -> list[str]:
    """What is wrong with the store after a kill, in words."""
    with sgp.Store(folder / "killed.db") as store:
        book = store.offset("streamgp fleet run")
        rows = 0 if book is None else book["rows"]
        expected = states[-(-rows // BATCH)]
        there = {key: store.get(key) for key in store.keys()}  # noqa: SIM118
    wrong = [f"{key}: after {rows} rows" for key in expected.keys() ^ there.keys()]
    for key in expected.keys() & there.keys():
        if not same(there[key], sgp.from_bytes(expected[key])):
            wrong.append(f"{key}: another state than after {rows} rows")
    return wrong


def same(model: sgp.ContinualGP, other: sgp.ContinualGP) -> bool:
    """Whether two models have learned the same, but for rounding."""
    means = [m.predict(PLACES, "level").mean for m in (model, other)]
    return model.observations == other.observations and np.allclose(*means, rtol=0, atol=1e-8)


def compare(folder: Path, kills: int, *, engine: str, rows: int, keys: int, seed: int) -> int:
    """Kill a run up to `kills` times, and return how many times it was killed.

    Raises an error if a state is not the one that it should be.
    """
    (folder / "run.toml").write_text(settings(engine))
    table(rows, keys, seed).to_csv(folder / "data.csv", index=False)
    begin = time.perf_counter()
    states = history(folder)
    seconds = time.perf_counter() - begin
    generator, killed = np.random.default_rng(seed), 0
    is_over = False
    while killed < kills and not is_over:
        is_over = ends(folder, generator.uniform(0, 0.15 * seconds))
        killed += not is_over
        wrong = differences(folder, states)
        assert not wrong, wrong
    assert is_over or ends(folder)
    assert not differences(folder, states)
    return killed


def main(kills: int = 200, rows: int = 1000, keys: int = 16) -> None:
    """Kill runs until there were so many kills."""
    total, seed = 0, 0
    with bar("kills", kills) as line:
        while total < kills:
            engine = ("dense", "chain")[seed % 2]
            line.show(f"stream {seed + 1}, {engine} engine")
            with tempfile.TemporaryDirectory() as folder:
                more = compare(
                    Path(folder), min(kills - total, 25),
                    engine=engine, rows=rows, keys=keys, seed=seed,
                )  # fmt: skip
            line.advance(more)
            total, seed = total + more, seed + 1
    print(f"{total} kills in {seed} streams. Every key was always at the state of its offset.")


if __name__ == "__main__":
    command("store_kills")
