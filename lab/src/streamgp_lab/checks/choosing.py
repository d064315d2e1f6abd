"""Draw the pictures of docs/choosing.md and docs/forecasting.md.

Those of the tutorial are what its own blocks draw, which run in a folder that is thrown away.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

import streamgp as sgp
from streamgp_lab.checks import command

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TUTORIAL = {"fan.png": "forecasting-fan.png", "components.png": "forecasting-components.png"}

Series = tuple[np.ndarray, np.ndarray]
Settings = Mapping[str, Callable[[], Mapping[str, Any]]]


def main(out: str = "docs/images", page: str = "docs/forecasting.md") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"kernels": _kernels, "means": _means, "seasons": _seasons}
    for name, draw in pictures.items():
        figure = draw()
        path = folder / f"choosing-{name}.png"
        figure.savefig(path, dpi=80)
        plt.close(figure)
        Console().print(f"{path}")
    _of_tutorial(Path(page), folder)


def _of_tutorial(page: Path, folder: Path) -> None:
    script = "\n".join(_BLOCK.findall(page.read_text()))
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        subprocess.run(
            [sys.executable, "-c", script], cwd=scratch, env=environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for drawn, name in _TUTORIAL.items():
            shutil.copy(Path(scratch) / drawn, folder / name)
            Console().print(f"{folder / name}")


def _compared(series: Series, ahead: int, settings: Settings, back: float) -> plt.Figure:
    """One fan chart per setting, of the same series, with what came."""
    x, y = series
    known, later = slice(None, -ahead), slice(-ahead, None)
    rows = (len(settings) + 1) // 2
    figure, panels = plt.subplots(
        rows, 2, figsize=(10, 2.1 * rows + 0.3), sharex=True, sharey=True, layout="constrained"
    )
    for panel, (title, options) in zip(panels.flat, settings.items(), strict=True):
        model = sgp.ContinualGP(sgp.Gaussian(), **options())
        for part in np.array_split(np.arange(len(x) - ahead), 6):
            model.update(x[part], y[part])
        model.plot_forecast(
            float(x[-1] - x[-ahead - 1]), back=back, data=(x[known], y[known]),
            later=(x[later], y[later]), levels=(0.5, 0.95), legend=False, ax=panel,
        )  # fmt: skip
        error = np.sqrt(np.mean((model.predict(x[later]).mean - y[later]) ** 2))
        panel.set_title(f"{title} (error {error:.1f})", loc="left", fontsize=10)
        panel.set_xlabel("")
        panel.set_ylabel("")
    return figure


def _kernels() -> plt.Figure:
    """A level that wanders, with faster waves on it."""
    generator = np.random.default_rng(3)
    x = np.arange(400.0)
    slow = 12 * np.sin(2 * np.pi * x / 310) + np.cumsum(0.35 * generator.normal(size=400))
    fast = np.convolve(generator.normal(size=420), np.hanning(21), "valid")[:400]
    y = slow + fast + 0.7 * generator.normal(size=400)
    kernels = {
        "RBF: smooth": sgp.RBF,
        "Matern32: bends at once": sgp.Matern32,
        "Matern12: a walk that returns": sgp.Matern12,
        "kernels.over_time(), the default": sgp.kernels.over_time,
    }
    settings = {title: lambda own=own: {"latents": own()} for title, own in kernels.items()}
    return _compared((x, y), 60, settings, back=150.0)


def _means() -> plt.Figure:
    """A straight rise and a week."""
    generator = np.random.default_rng(1)
    x = np.arange(154.0)
    noise = np.convolve(generator.normal(size=156), [0.6, 0.5, 0.4], "valid")
    y = 20 + 0.12 * x + 4 * np.sin(2 * np.pi * x / 7) + 2 * np.cos(4 * np.pi * x / 7) + noise
    line = sgp.Constant() + sgp.Trend()
    settings: Settings = {
        "nothing set": dict,
        "mean=Constant() + Trend()": lambda: {"mean": line},
        "seasons=[7]": lambda: {"seasons": [7]},
        "both": lambda: {"mean": line, "seasons": [7]},
    }
    return _compared((x, y), 35, settings, back=49.0)


def _seasons() -> plt.Figure:
    """A daily pattern whose height changes over weeks."""
    generator = np.random.default_rng(2)
    hour = np.arange(24 * 28.0)
    height = 3 + 2.5 * np.sin(2 * np.pi * hour / (24 * 19))
    y = height * np.sin(2 * np.pi * hour / 24) + 0.5 * generator.normal(size=len(hour))
    rhythm = {"period": sgp.fixed(24.0), "lengthscale": 1.0}

    def changing() -> Mapping[str, Any]:
        return {"latents": sgp.Periodic(**rhythm) * sgp.Matern32(240.0) + sgp.Matern32()}

    settings: Settings = {
        "seasons=[24]: always the same": lambda: {"seasons": [24]},
        "Periodic × Matern32: may change": changing,
    }
    return _compared((hour, y), 48, settings, back=240.0)


if __name__ == "__main__":
    command("choosing")
