"""Learn a batch of a million rows, and measure time, memory and accuracy.

The accuracy is compared with that of the same model after 4,096 of the rows.
"""

import resource
import time

import numpy as np

import streamgp as sgp
from streamgp_lab.checks import command
from streamgp_lab.progress import bar
from streamgp_lab.reporting.tables import Table

_FEW = 4096


def main(rows: int = 1_000_000) -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 20, rows + 2000)
    f = np.sin(x) + 0.5 * np.sin(2.3 * x)
    channels = {
        "Gaussian": (sgp.Gaussian(), f + 0.5 * generator.normal(size=len(x))),
        "Bernoulli": (sgp.Bernoulli(), (f + generator.logistic(size=len(x)) > 0).astype(float)),
    }
    table, test = [], slice(rows, None)
    with bar("large", 2 * len(channels)) as line:
        for name, (likelihood, y) in channels.items():
            nlpds = []
            for count in (_FEW, rows):
                line.show(f"{name}, {count:,} rows")
                model = sgp.ContinualGP(likelihood)
                begin = time.perf_counter()
                model.update(x[:count], y[:count])
                seconds = time.perf_counter() - begin
                nlpds.append(-np.mean(model.predict(x[test]).log_density(y[test])))
                line.advance()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            few, many = (f"{nlpd:.4f}" for nlpd in nlpds)
            table.append([name, f"{rows:,}", f"{seconds:.0f}", f"{peak:.0f}", many, few])
    heading = ["likelihood", "rows", "seconds", "peak memory, MB", "NLPD per point"]
    print(Table("large", [*heading, f"NLPD after {_FEW:,} rows"], table).markdown())


if __name__ == "__main__":
    command("large")
