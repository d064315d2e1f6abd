"""Do 95% intervals hold 95% of what was never learned? Streams of every family, and the sunspots.

    python -m streamgp_lab.checks.coverage

Each family draws from itself around a known function, in batches that move on along the input; half
of it is held out. Intervals of whole numbers hold at least their level: one more step is all or
nothing. Of the sunspots every tenth month is held out, the others come one by one. The
paper's toys have theirs in the tables of `streamgp reproduce`.
"""

import jax
import numpy as np
import paramax

import streamgp as sgp
from streamgp_lab.experiments import solar
from streamgp_lab.experiments.problem import Options

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


def covered(model: sgp.ContinualGP, x: np.ndarray, y: np.ndarray, name: str | None = None) -> float:
    lower, upper = model.predict(x, name).interval(LEVEL)
    return float(np.mean((lower <= y) & (y <= upper)))


def family(name: str, rows: int = 2000, batches: int = 5, seed: int = 0) -> float:
    """The share of held-out draws inside their interval, at the end of a stream."""
    x = np.sort(np.random.default_rng(seed).uniform(0, 10, rows))
    truth = np.stack([1.5 + np.sin(1.5 * x), -1.0 + 0.5 * np.cos(x)], axis=1)
    likelihood = FAMILIES[name]
    with jax.enable_x64(True):
        drawn = paramax.unwrap(likelihood).distribution(truth[:, : likelihood.latents])
        y = np.asarray(drawn.sample(jax.random.key(seed)), float)
    counts = {"Binomial": (20,), "Ordinal": (5,)}
    model = sgp.ContinualGP(_BLANK[name](*counts.get(name, ())))
    for part in np.array_split(np.arange(rows), batches):
        model.update(x[part[::2]], y[part[::2]])
    return covered(model, x[1::2], y[1::2])


def sunspots() -> float:
    x, y = solar.problem(Options()).everything()["y"]
    held_out = np.arange(len(x)) % 10 == 5
    learned_x, learned_y = x[~held_out], y[~held_out]
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=[sgp.Matern32()], inducing=sgp.Adaptive(budget=512)
    )
    model.update(learned_x[: solar.WARM_UP], learned_y[: solar.WARM_UP])
    model.update_many(learned_x[solar.WARM_UP :], learned_y[solar.WARM_UP :])
    return covered(model, x[held_out], y[held_out])


def main() -> None:
    print("| stream | held-out data in 95% intervals |\n|---|---|")
    for name in FAMILIES:
        print(f"| {name} | {family(name):.3f} |", flush=True)
    print(f"| sunspots | {sunspots():.3f} |")


if __name__ == "__main__":
    main()
