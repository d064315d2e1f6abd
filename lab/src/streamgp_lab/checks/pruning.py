"""Which inducing points to drop when the budget binds: by information, the oldest, or at random.

    python -m streamgp_lab.checks.pruning [--seeds 6]

The paper's streaming toy; NLPD of everything, and of the first batch, end less first.
"""

import argparse

import numpy as np

import streamgp as sgp
from streamgp_lab.checks import toys


def oldest(state: sgp.State, budget: int) -> np.ndarray:
    """Keep the points that came last."""
    mask = np.asarray(state.inducing.mask)
    rank = np.cumsum(mask[:, ::-1], axis=1)[:, ::-1]
    return mask & (rank <= budget)


def random(state: sgp.State, budget: int) -> np.ndarray:
    """Keep any."""
    generator = np.random.default_rng(int(state.count))
    mask = np.asarray(state.inducing.mask)
    kept = np.zeros_like(mask)
    for q, row in enumerate(mask):
        slots = np.flatnonzero(row)
        kept[q, generator.choice(slots, min(budget, len(slots)), replace=False)] = True
    return kept


RULES = {"least information (default)": None, "oldest": oldest, "random": random}


def main(seeds: int) -> None:
    print("| budget | dropped | NLPD of all, mean | worst seed | first batch, end less first |")
    print("|---|---|---|---|---|")
    for budget in (10, 14):
        for name, drop in RULES.items():
            outcomes = []
            for seed in range(seeds):
                strategy = sgp.Adaptive(budget=budget, drop=drop)
                model = sgp.ContinualGP(sgp.Gaussian(), inducing=strategy)
                outcomes.append(toys.stream_through(model, seed))
            final = [o.final for o in outcomes]
            drift = np.mean([o.oldest_now - o.oldest_first for o in outcomes])
            print(f"| {budget} | {name} | {np.mean(final):.4f} | {max(final):.4f} | {drift:+.4f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    main(parser.parse_args().seeds)
