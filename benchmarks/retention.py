"""Does the model forget? The paper's streaming and asynchronous toy problems, over seeds.

    python -m benchmarks.retention [--seeds 10]

NLPD a held-out point, less that of a reference trained on everything at once (exact GP, or the same
model offline), and how much the first batch is worse at the end than when it had just been learned.
"""

import argparse

import numpy as np

import streamgp as sgp
from benchmarks import toys

PLACEMENTS = {
    "M = 3t": sgp.Growing(lambda t: 3 * t),
    "adaptive": sgp.Adaptive(),
}


def streaming(seeds: int) -> None:
    print("| streaming | above the exact GP | first batch, end less first | M |")
    print("|---|---|---|---|")
    exact = [toys.exact_nlpd(toys.streaming(seed)) for seed in range(seeds)]
    for name, strategy in PLACEMENTS.items():
        rows = []
        for seed in range(seeds):
            model = sgp.ContinualGP(sgp.Gaussian(), inducing=strategy)
            outcome = toys.stream_through(model, toys.streaming(seed))
            drift = outcome.oldest_now - outcome.oldest_first
            rows.append((outcome.final - exact[seed], drift, len(model.inducing_points[0])))
        print(f"| {name} | {_spread(rows, 0)} | {_spread(rows, 1)} | {np.mean(rows, 0)[2]:.0f} |")
    print(f"\nexact GP: {np.mean(exact):.4f} (mean of {seeds} seeds)\n")


def asynchronous(seeds: int) -> None:
    print("| asynchronous | offline | continual less offline |")
    print("|---|---|---|")
    gaps: dict[str, list[tuple[float, float]]] = {name: [] for name in toys.NOISES}
    for seed in range(seeds):
        channels = toys.asynchronous(seed)
        model, offline = toys.two_channels(seed), toys.two_channels(seed)
        for batch in toys.switching_batches(channels):
            model.update(batch)
        offline.update(toys.all_at_once(channels))
        for name, data in channels.items():
            reference = toys.nlpd(offline, data, name)
            gaps[name].append((reference, toys.nlpd(model, data, name) - reference))
    for name, rows in gaps.items():
        print(f"| {name} channel | {np.mean(rows, 0)[0]:.4f} | {_spread(rows, 1)} |")


def _spread(rows: list, column: int) -> str:
    values = np.asarray(rows)[:, column]
    return f"{values.mean():+.4f} ({values.min():+.4f} … {values.max():+.4f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    streaming(options.seeds)
    asynchronous(options.seeds)
