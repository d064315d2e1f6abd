"""Kill `streamgp run` at random moments, again and again: does it matter?

    python -m streamgp_lab.checks.kills --kills 50

A mixed table (real, binary, count; missing values) streams into a model, sample by sample and in
batches. The run is killed with SIGKILL after a random time and started again until it ends. Its
model and its predictions must be those of a run that was left alone, byte for byte.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

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


def command(folder: Path, name: str) -> list[str]:
    return [
        *(sys.executable, "-m", "streamgp", "run"),
        *(str(folder / "run.toml"), str(folder / "data.csv")),
        *("--model", str(folder / f"{name}.sgp")),
        *("--predictions", str(folder / f"{name}.csv")),
    ]


def end(arguments: list[str], limit: float | None = None) -> bool:
    """Whether the run came to its end within the limit; else it is killed."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
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
    """Kill a run so often; how many kills it took. Raises if the ends differ."""
    (folder / "run.toml").write_text(config.replace("SAMPLES", str(samples).lower()))
    table(rows, seed).to_csv(folder / "data.csv", index=False)
    begin = time.perf_counter()
    assert end(command(folder, "alone"))
    seconds = time.perf_counter() - begin
    generator, killed = np.random.default_rng(seed), 0
    while killed < kills and not end(command(folder, "killed"), generator.uniform(0, seconds)):
        killed += 1
    assert end(command(folder, "killed"))
    for suffix in (".sgp", ".csv"):
        alone, other = ((folder / f"{n}{suffix}").read_bytes() for n in ("alone", "killed"))
        assert alone == other, f"the {suffix} files differ"
    return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=3000)
    options = parser.parse_args()
    total, seed = 0, 0
    while total < options.kills:
        with tempfile.TemporaryDirectory() as folder:
            more = compare(
                Path(folder), options.kills - total, samples=bool(seed % 2), rows=options.rows,
                seed=seed,
            )  # fmt: skip
        total, seed = total + more, seed + 1
        print(f"{total} kills, {seed} streams: the same model and predictions every time")


if __name__ == "__main__":
    main()
