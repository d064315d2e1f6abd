"""Learn a large batch on the dense engine, and measure time, memory and accuracy.

The accuracy is compared with that of the same model after 4,096 of the rows.
"""

import resource
import time
from typing import NamedTuple

import numpy as np

import streamgp as sgp
from streamgp_lab.checks import command
from streamgp_lab.progress import Bar, bar
from streamgp_lab.reporting.tables import Table

_FEW = 4096
_HELD_OUT = 5000


class _Channel(NamedTuple):
    """A likelihood, inputs and observations; the last ones are held out."""

    likelihood: sgp.Likelihood
    x: np.ndarray
    y: np.ndarray


class _Learned(NamedTuple):
    """How much CPU time a batch took, and the NLPD per point of what is held out."""

    seconds: float
    nlpd: float


def main(rows: int = 100_000) -> None:
    channels = _channels(rows)
    found = []
    with bar("large", 2 * len(channels)) as line:
        for name, channel in channels.items():
            few = _learn(line, name, channel, _FEW)
            many = _learn(line, name, channel, rows)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            figures = [f"{many.seconds:.0f}", f"{peak:.0f}", f"{many.nlpd:.4f}", f"{few.nlpd:.4f}"]
            found.append([name, f"{rows:,}", *figures])
    heading = ["likelihood", "rows", "CPU seconds", "peak memory, MB", "NLPD per point"]
    print(Table("large", [*heading, f"NLPD after {_FEW:,} rows"], found).markdown())


def _channels(rows: int) -> dict[str, _Channel]:
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 20, rows + _HELD_OUT)
    f = np.sin(x) + 0.5 * np.sin(2.3 * x)
    classes = f + generator.logistic(size=len(x)) > 0
    return {
        "Gaussian": _Channel(sgp.Gaussian(), x, f + 0.5 * generator.normal(size=len(x))),
        "Bernoulli": _Channel(sgp.Bernoulli(), x, classes.astype(float)),
        "Poisson": _Channel(sgp.Poisson(), x, generator.poisson(np.exp(f)).astype(float)),
    }


def _learn(line: Bar, name: str, channel: _Channel, rows: int) -> _Learned:
    line.show(f"{name}, {rows:,} rows")
    model = sgp.ContinualGP(channel.likelihood, engine="dense")  # which keeps few of the rows
    begin = time.process_time()
    model.update(channel.x[:rows], channel.y[:rows])
    seconds = time.process_time() - begin
    held_out = slice(len(channel.x) - _HELD_OUT, None)
    density = model.predict(channel.x[held_out]).log_density(channel.y[held_out])
    line.advance()
    return _Learned(seconds, -float(np.mean(density)))


if __name__ == "__main__":
    command("large")
