"""Does anything ever break? Random streams of every likelihood, for as long as you like.

    python -m benchmarks.soak --updates 100000

Batches of one to eight rows at random places, old ground and new, outliers, repeats; now and then
samples one by one, a refinement, a change of what is forgotten. After every update all of the state
must be finite, and every so often predictions too, with no negative variance.
"""

import argparse
from collections.abc import Iterator

import jax
import numpy as np

import streamgp as sgp

FAMILIES: dict[str, sgp.Likelihood] = {
    "real": sgp.Gaussian(), "binary": sgp.Bernoulli(), "probit": sgp.Bernoulli("probit"),
    "count": sgp.Poisson(), "class": sgp.Categorical(3), "robust": sgp.StudentT(),
    "two": sgp.HeteroscedasticGaussian(), "waiting": sgp.Exponential(), "amount": sgp.Gamma(),
    "share": sgp.Beta(), "trials": sgp.Binomial(7), "clumped": sgp.NegativeBinomial(),
    "grade": sgp.Ordinal(4), "income": sgp.LogNormal(),
}  # fmt: skip


def draw(name: str, f: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Observations around f, some of them gross."""
    n = len(f)
    f = np.where(generator.uniform(size=n) < 0.01, 8 * f, f)
    positive = np.exp(np.clip(f, -8, 8)) * generator.exponential(size=n) + 1e-6
    values = {
        "real": f + generator.normal(size=n),
        "binary": f > 0,
        "probit": f > 0,
        "count": generator.poisson(np.exp(np.clip(f, -8, 8))),
        "class": np.clip(np.round(f + 1), 0, 2),
        "robust": f + generator.standard_t(2, size=n),
        "two": f + np.exp(np.clip(f, -4, 4)) * generator.normal(size=n),
        "waiting": positive,
        "amount": positive,
        "share": np.clip(1 / (1 + np.exp(-f - generator.normal(size=n))), 1e-6, 1 - 1e-6),
        "trials": generator.binomial(7, 1 / (1 + np.exp(-np.clip(f, -30, 30)))),
        "clumped": generator.poisson(positive),
        "grade": np.clip(np.round(f + 1.5), 0, 3),
        "income": positive,
    }
    return values[name].astype(float)


def models(names: list[str]) -> Iterator[tuple[list[str], sgp.ContinualGP]]:
    """Each family alone, and all of them together."""
    for name in names:
        yield [name], sgp.ContinualGP({name: FAMILIES[name]}, inducing=sgp.Adaptive(budget=20))
    together = {name: FAMILIES[name] for name in names[:4]}
    yield (
        list(together),
        sgp.ContinualGP(together, latents=2, inducing=sgp.Adaptive(budget=20), forgetting=0.99),
    )


def run(updates: int, names: list[str], seed: int = 0) -> int:
    """As many updates, shared among the models; how many were made."""
    generator = np.random.default_rng(seed)
    made = 0
    for own, model in models(names):
        for step in range(updates // (len(names) + 1)):
            _update(model, own, generator, step)
            _check(model, generator, thoroughly=step % 50 == 0)
            made += 1
    return made


def _update(
    model: sgp.ContinualGP, names: list[str], generator: np.random.Generator, step: int
) -> None:
    batch = {}
    for name in generator.permutation(names)[: generator.integers(1, len(names) + 1)]:
        x = generator.uniform(0, 1 + step / 100, generator.integers(1, 9))
        x = np.where(generator.uniform(size=len(x)) < 0.1, x[0], x)
        batch[str(name)] = (x, draw(str(name), 2 * np.sin(3 * x), generator))
    kind = generator.uniform()
    if kind < 0.1 and len(names) == 1:
        model.update_many(*next(iter(batch.values())))
    elif kind < 0.12 and model.state is not None:
        model.refine()
    else:
        model.update(batch)


def _check(model: sgp.ContinualGP, generator: np.random.Generator, *, thoroughly: bool) -> None:
    for leaf in jax.tree.leaves(model.state):
        assert np.isfinite(leaf).all(), model
    if thoroughly:
        x = generator.uniform(-5, 20, 30)
        for name in model.channels:
            prediction = model.predict(x, name)
            assert np.isfinite(prediction.latent_mean).all(), name
            assert np.all(prediction.latent_variance >= 0), name
            assert np.all(prediction.variance >= 0), name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{run(options.updates, list(FAMILIES), options.seed)} updates, nothing broke")
