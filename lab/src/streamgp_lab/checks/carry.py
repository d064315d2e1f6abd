"""Compare the rules for moving knowledge to other inducing points.

The stream is the paper's streaming toy, which needs about 24 points. Points are dropped because the
budget is smaller, or because a new grid is placed at every update.
"""

import streamgp as sgp
from streamgp_lab.checks import command, streaming_toy

RULES = {"Projection": sgp.Projection(), "Marginals": sgp.Marginals()}
PLACEMENTS = {
    "budget 14": sgp.Adaptive(budget=14),
    "budget 10": sgp.Adaptive(budget=10),
    "grid of 12 at every update": sgp.Growing(lambda t: 12),
}


def main(seeds: int = 6) -> None:
    variants = {
        (placement, name): lambda strategy=strategy, rule=rule: sgp.ContinualGP(
            sgp.Gaussian(), inducing=strategy, carry=rule
        )
        for placement, strategy in PLACEMENTS.items()
        for name, rule in RULES.items()
    }
    streaming_toy.compare("carry", ("placement", "rule"), variants, seeds)


if __name__ == "__main__":
    command("carry")
