"""Measure how often 95% intervals contain held-out data.

There is one synthetic stream per likelihood: draws around a known function, in batches along the
input, with half of them held out. Intervals of whole numbers contain at least 95%, because they
grow in whole steps. In a stream of sunspots every tenth month is held out, and the others come one
by one. The tables of `streamgp-lab reproduce` have the coverage of the paper's experiments.
"""

import numpy as np

import streamgp as sgp
from streamgp.parameters import unwrap
from streamgp_lab.checks import command
from streamgp_lab.experiments import solar
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.progress import bar
from streamgp_lab.reporting.tables import Table

LEVEL = 0.95
FAMILIES: dict[str, sgp.Likelihood] = {
    "Gaussian": sgp.Gaussian(noise=0.3),
    "HeteroscedasticGaussian": sgp.HeteroscedasticGaussian(),
    "StudentT": sgp.StudentT(scale=0.3, df=4.0),
    "LogNormal": sgp.LogNormal(noise=0.3),
    "Exponential": sgp.Exponential(),
    "Gamma": sgp.Gamma(shape=4.0),
    "Beta": sgp.Beta(concentration=10.0),
    "Poisson": sgp.Poisson(),
    "NegativeBinomial": sgp.NegativeBinomial(concentration=3.0),
    "Binomial": sgp.Binomial(20),
    "Ordinal": sgp.Ordinal(5).start(np.arange(5.0)),
}
_BLANK = {name: type(family) for name, family in FAMILIES.items()}


def covered(model: sgp.ContinualGP, x: np.ndarray, y: np.ndarray) -> float:
    """The share of observations inside their interval."""
    lower, upper = model.predict(x).interval(LEVEL)
    return float(np.mean((lower <= y) & (y <= upper)))


def family(name: str, rows: int = 2000, batches: int = 5, seed: int = 0) -> float:
    """The share of held-out draws inside their interval at the end of a stream."""
    generator = np.random.default_rng(seed)
    x = np.sort(generator.uniform(0, 10, rows))
    truth = np.stack([1.5 + np.sin(1.5 * x), -1.0 + 0.5 * np.cos(x)], axis=1)
    likelihood = FAMILIES[name]
    y = np.asarray(unwrap(likelihood).sample(truth[:, : likelihood.latents], generator), float)
    counts = {"Binomial": (20,), "Ordinal": (5,)}
    model = sgp.ContinualGP(_BLANK[name](*counts.get(name, ())))
    for part in np.array_split(np.arange(rows), batches):
        model.update(x[part[::2]], y[part[::2]])
    return covered(model, x[1::2], y[1::2])


def sunspots() -> float:
    """The share of held-out months inside their interval at the end of the stream."""
    x, y = solar.problem(Options()).everything()["y"]
    held_out = np.arange(len(x)) % 10 == 5
    learned_x, learned_y = x[~held_out], y[~held_out]
    model = sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Matern32()])
    model.update(learned_x[: solar.WARM_UP], learned_y[: solar.WARM_UP])
    model.update_many(learned_x[solar.WARM_UP :], learned_y[solar.WARM_UP :])
    return covered(model, x[held_out], y[held_out])


def main() -> None:
    rows = []
    with bar("coverage", len(FAMILIES) + 1) as line:
        for name in (*FAMILIES, "sunspots"):
            line.show(name)
            share = sunspots() if name == "sunspots" else family(name)
            rows.append([name, f"{share:.3f}"])
            line.advance()
    print(Table("coverage", ["stream", "share of held-out data in 95% intervals"], rows).markdown())


if __name__ == "__main__":
    command("coverage")
