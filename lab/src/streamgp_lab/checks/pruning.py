"""Compare rules for dropping inducing points when the budget is full.

The stream is the paper's streaming toy. The rules drop the point with the least information, the
oldest point, or a random point.
"""

import numpy as np

import streamgp as sgp
from streamgp_lab.checks import command, streaming_toy


def oldest(state: sgp.State, budget: int) -> list[np.ndarray]:
    """Keep the points that were added last."""
    return [np.arange(len(points)) >= len(points) - budget for points in state.points]


def random(state: sgp.State, budget: int) -> list[np.ndarray]:
    """Keep random points."""
    generator = np.random.default_rng(int(state.count))
    return [generator.permutation(len(points)) < budget for points in state.points]


RULES = {"least information (default)": None, "oldest": oldest, "random": random}


def main(seeds: int = 6) -> None:
    variants = {
        (str(budget), name): lambda budget=budget, drop=drop: sgp.ContinualGP(
            sgp.Gaussian(), inducing=sgp.Adaptive(budget=budget, drop=drop)
        )
        for budget in (10, 14)
        for name, drop in RULES.items()
    }
    streaming_toy.compare("pruning", ("budget", "dropped point"), variants, seeds)


if __name__ == "__main__":
    command("pruning")
