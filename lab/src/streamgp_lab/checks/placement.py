"""Draw the pictures of docs/placement.md: points over one input, over two, and the price of few."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

import streamgp as sgp
from streamgp_lab.checks import command

_BUDGETS = (4, 6, 8, 12, 16, 24, 32, 48)


def main(out: str = "docs/images") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in {"one": _one_input, "two": _two_inputs, "price": _price}.items():
        figure = draw()
        path = folder / f"placement-{name}.png"
        figure.savefig(path, dpi=110, bbox_inches="tight")
        plt.close(figure)
        Console().print(f"{path}")


def _wave(x: np.ndarray) -> np.ndarray:
    """A function that changes faster and faster."""
    return np.sin(0.35 * x**1.6)


def _one_input() -> plt.Figure:
    """A stream that goes on to new ground and then comes back."""
    generator = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=64))
    figure, panels = plt.subplots(3, 1, figsize=(8, 5.6), sharex=True, layout="constrained")
    batches = [(0, 4), (4, 10), (0, 10)]
    titles = ["the first batch", "new ground: points follow it", "known ground: room is used up"]
    line = np.linspace(-0.5, 10.5, 400)
    for panel, title, (low, high) in zip(panels, titles, batches, strict=True):
        x = generator.uniform(low, high, 60)
        y = _wave(x) + 0.1 * generator.normal(size=60)
        report = model.update(x, y)
        prediction = model.predict(line)
        lower, upper = prediction.interval(0.95)
        panel.fill_between(line, lower, upper, color="tab:blue", alpha=0.2, lw=0)
        panel.plot(line, prediction.mean, color="tab:blue")
        panel.plot(x, y, ".", color="0.3", ms=4)
        points = model.inducing_points[0][:, 0]
        panel.plot(points, np.full(len(points), -2.2), "|", color="tab:red", ms=9, mew=1.4)
        panel.set_title(f"{title} ({report.inducing_after[0]} points)", fontsize=10, loc="left")
        panel.set_ylim(-2.5, 2.5)
    return figure


def _two_inputs() -> plt.Figure:
    """Two inputs in shuffled batches: where the points are after one, three and ten."""
    generator = np.random.default_rng(1)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=48))
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
    side = np.linspace(-3, 3, 80)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    shown = iter(panels)
    for step in range(1, 11):
        x = np.clip(generator.normal(size=(80, 2)), -3, 3)
        y = np.sin(2 * x[:, 0]) * np.cos(x[:, 1]) + 0.1 * generator.normal(size=80)
        report = model.update(x, y)
        if step not in (1, 3, 10):
            continue
        panel = next(shown)
        spread = np.sqrt(model.predict(grid).latent_variance).reshape(80, 80)
        image = panel.pcolormesh(side, side, spread, cmap="Blues", vmin=0, vmax=0.7)
        panel.plot(*model.inducing_points[0].T, ".", color="tab:red", ms=6)
        batches = "batch" if step == 1 else "batches"
        panel.set_title(f"{step} {batches}, {report.inducing_after[0]} points", fontsize=10)
        panel.set_xlim(-3, 3)
        panel.set_ylim(-3, 3)
    figure.colorbar(image, ax=panels, label="standard deviation of f")
    return figure


def _price() -> plt.Figure:
    """Held-out NLPD and open variance of the same stream with smaller and larger budgets."""
    generator = np.random.default_rng(2)
    x = np.sort(generator.uniform(0, 10, 800))
    y = _wave(x) + 0.1 * generator.normal(size=800)
    held_out = generator.uniform(size=800) < 0.25
    parts = np.array_split(np.flatnonzero(~held_out), 10)
    nlpd, left = [], []
    for budget in _BUDGETS:
        model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=budget))
        for part in parts:
            report = model.update(x[part], y[part])
        density = model.predict(x[held_out]).log_density(y[held_out])
        nlpd.append(-float(np.mean(density)))
        left.append(100 * report.open_variance[0])
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    labels = ("NLPD per held-out point", "variance left open, %")
    for panel, numbers, label in zip(panels, (nlpd, left), labels, strict=True):
        panel.plot(_BUDGETS, numbers, "o-", color="tab:blue", ms=4)
        panel.set_xlabel("budget")
        panel.set_title(label, fontsize=10, loc="left")
        panel.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    command("placement")
