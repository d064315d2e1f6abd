"""Which rule of carrying forgets less when points must go?

    python -m streamgp_lab.checks.carry [--seeds 6]

The streaming toy problem with a budget that binds (it wants about 24 points), and with a grid laid
anew at every update.
"""

import argparse

import numpy as np

import streamgp as sgp
from streamgp_lab.checks import toys

RULES = {"Projection": sgp.Projection(), "Marginals": sgp.Marginals()}
PLACEMENTS = {
    "budget 14": sgp.Adaptive(budget=14),
    "budget 10": sgp.Adaptive(budget=10),
    "grid of 12 at every update": sgp.Growing(lambda t: 12),
}


def main(seeds: int) -> None:
    print("| placement | rule | NLPD of all, mean | worst seed | first batch, end less first |")
    print("|---|---|---|---|---|")
    for placement, strategy in PLACEMENTS.items():
        for name, rule in RULES.items():
            rows = []
            for seed in range(seeds):
                model = sgp.ContinualGP(sgp.Gaussian(), inducing=strategy, carry=rule)
                outcome = toys.stream_through(model, seed)
                rows.append((outcome.final, outcome.oldest_now - outcome.oldest_first))
            final, drift = np.array(rows).T
            print(
                f"| {placement} | {name} | {final.mean():.4f} | {final.max():.4f} "
                f"| {drift.mean():+.4f} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    main(parser.parse_args().seeds)
