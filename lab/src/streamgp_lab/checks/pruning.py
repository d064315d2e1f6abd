"""Compare rules for dropping inducing points when the budget is full.

The stream is the paper's streaming toy. The rules drop the point with the least information, the
oldest point, or a random point.
"""

import dataclasses

import numpy as np

import streamgp as sgp
from streamgp.inference.sparse.state import State
from streamgp_lab.checks import command, streaming_toy


@dataclasses.dataclass(frozen=True)
class Oldest(sgp.Adaptive):
    """It keeps the points that were added last."""

    def kept(self, state: State, budget: int) -> list[np.ndarray]:
        return [np.arange(len(points)) >= len(points) - budget for points in state.points]


@dataclasses.dataclass(frozen=True)
class Random(sgp.Adaptive):
    """It keeps random points."""

    def kept(self, state: State, budget: int) -> list[np.ndarray]:
        generator = np.random.default_rng(int(state.count))
        return [generator.permutation(len(points)) < budget for points in state.points]


RULES = {"least information (default)": sgp.Adaptive, "oldest": Oldest, "random": Random}


def main(seeds: int = 6) -> None:
    variants = {
        (str(budget), name): lambda budget=budget, rule=rule: sgp.ContinualGP(
            sgp.Gaussian(), inducing=rule(budget=budget)
        )
        for budget in (10, 14)
        for name, rule in RULES.items()
    }
    streaming_toy.compare("pruning", ("budget", "dropped point"), variants, seeds)


if __name__ == "__main__":
    command("pruning")
