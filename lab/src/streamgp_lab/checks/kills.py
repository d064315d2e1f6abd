"""Kill `streamgp run` at random moments, and compare its results with a run left alone.

The table has a real, a binary and a count channel, with missing values. It streams into a model, in
batches or as single samples. The run is killed with SIGKILL after a random time and started again,
until it ends. The files of its model and its predictions must equal those of a run left alone.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from streamgp_lab.checks import command
from streamgp_lab.progress import bar

CONFIG = """
[channels]
level = "Gaussian"
alarm = "Bernoulli"
events = "Poisson"

[data]
inputs = "time"

[model]
latents = 1
inducing = { kind = "Adaptive", budget = 24 }
learning = { rounds = 1 }

[stream]
batch = 25
samples = SAMPLES
snapshot = 0
"""


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    t = pd.Timestamp("2024-01-01", tz="Europe/Madrid") + pd.to_timedelta(np.arange(rows), "h")
    f = np.sin(np.arange(rows) / 40)
    frame = pd.DataFrame(
        {
            "time": t,
            "level": 20 + 3 * f + generator.normal(size=rows),
            "alarm": (f + generator.normal(size=rows) > 0).astype(float),
            "events": generator.poisson(np.exp(1 + f)).astype(float),
        }
    )
    return frame.mask(generator.uniform(size=frame.shape) < [0, 0.3, 0.3, 0.3])


def arguments(folder: Path, name: str) -> list[str]:
    return [
        *(sys.executable, "-m", "streamgp", "run"),
        *(str(folder / "run.toml"), str(folder / "data.csv")),
        *("--model", str(folder / f"{name}.sgp")),
        *("--predictions", str(folder / f"{name}.csv")),
    ]


def ends(words: list[str], limit: float | None = None) -> bool:
    """Whether a run ends within the limit. Otherwise it is killed."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False
    assert process.returncode == 0, errors
    return True


def compare(
    folder: Path, kills: int, *, samples: bool, rows: int, seed: int, config: str = CONFIG
) -> int:
    """Kill a run up to `kills` times, and return how many times it was killed.

    Raises an error if its results differ from those of a run left alone.
    """
    (folder / "run.toml").write_text(config.replace("SAMPLES", str(samples).lower()))
    table(rows, seed).to_csv(folder / "data.csv", index=False)
    begin = time.perf_counter()
    assert ends(arguments(folder, "alone"))
    seconds = time.perf_counter() - begin
    generator, killed = np.random.default_rng(seed), 0
    while killed < kills and not ends(arguments(folder, "killed"), generator.uniform(0, seconds)):
        killed += 1
    assert ends(arguments(folder, "killed"))
    for suffix in (".sgp", ".csv"):
        alone, other = ((folder / f"{n}{suffix}").read_bytes() for n in ("alone", "killed"))
        assert alone == other, f"the {suffix} files differ"
    return killed


def main(kills: int = 50, rows: int = 3000) -> None:
    total, seed = 0, 0
    with bar("kills", kills) as line:
        while total < kills:
            samples = bool(seed % 2)
            line.show(f"stream {seed + 1}, {'single samples' if samples else 'batches'}")
            with tempfile.TemporaryDirectory() as folder:
                more = compare(Path(folder), kills - total, samples=samples, rows=rows, seed=seed)
            line.advance(more)
            total, seed = total + more, seed + 1
    print(f"{total} kills in {seed} streams. Models and predictions were always the same.")


if __name__ == "__main__":
    command("kills")
