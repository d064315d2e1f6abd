"""A batch of a million rows, in bounded memory, beside the same model given a sample of it.

python -m streamgp_lab.checks.large [--rows 1000000]
"""

import argparse
import resource
import time

import numpy as np

import streamgp as sgp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 20, rows + 2000)
    f = np.sin(x) + 0.5 * np.sin(2.3 * x)
    channels = {
        "Gaussian": (sgp.Gaussian(), f + 0.5 * generator.normal(size=len(x))),
        "Bernoulli": (sgp.Bernoulli(), (f + generator.logistic(size=len(x)) > 0).astype(float)),
    }
    print("| family | rows | seconds | peak memory, MB | NLPD | NLPD from 4 096 rows |")
    print("|---|---|---|---|---|---|")
    for name, (likelihood, y) in channels.items():
        test = slice(rows, None)
        small = sgp.ContinualGP(likelihood)
        small.update(x[:4096], y[:4096])
        model = sgp.ContinualGP(likelihood)
        begin = time.perf_counter()
        model.update(x[:rows], y[:rows])
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        all_of_it, part = (
            -np.mean(m.predict(x[test]).log_density(y[test])) for m in (model, small)
        )
        print(f"| {name} | {rows:,} | {seconds:.0f} | {peak:.0f} | {all_of_it:.4f} | {part:.4f} |")


if __name__ == "__main__":
    main()
