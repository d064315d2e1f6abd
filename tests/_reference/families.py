"""One likelihood of each family, with observations that it could have made."""

import numpy as np
from scipy.special import expit

import streamgp as sgp
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.parameters import replaced


def _noisy(g, f):
    return f + 0.3 * g.normal(size=len(f))


def _with(column):
    """An observation of two numbers."""
    return lambda draw: lambda g, f: np.column_stack([draw(g, f), column(g, len(f))])


def _shares(g, f):
    return np.stack([g.dirichlet(3 * np.exp([a, 0, -a])) for a in f])


def _counts(g, f):
    return np.stack([g.multinomial(6, p) for p in _shares(g, f)]).astype(float)


FAMILIES = {
    "Gaussian": (sgp.Gaussian(), _noisy),
    "Gaussian with errors": (
        sgp.Gaussian(error=True), _with(lambda g, n: g.uniform(0.1, 0.5, n))(_noisy)
    ),
    "Poisson": (sgp.Poisson(), lambda g, f: g.poisson(np.exp(1 + f)) * 1.0),
    "Bernoulli": (sgp.Bernoulli(), lambda g, f: (g.uniform(size=len(f)) < expit(2 * f)) * 1.0),
    "Probit": (sgp.Bernoulli("probit"), lambda g, f: (_noisy(g, f) > 0) * 1.0),
    "StudentT": (sgp.StudentT(), lambda g, f: f + 0.2 * g.standard_t(3, len(f))),
    "HeteroscedasticGaussian": (
        sgp.HeteroscedasticGaussian(), lambda g, f: f + np.exp(f - 1) * g.normal(size=len(f))
    ),
    "Categorical": (sgp.Categorical(3), lambda g, f: np.digitize(_noisy(g, f), [-0.5, 0.5]) * 1.0),
    "Ordinal": (sgp.Ordinal(4), lambda g, f: np.digitize(_noisy(g, f), [-0.7, 0, 0.7]) * 1.0),
    "Gamma": (sgp.Gamma(), lambda g, f: g.gamma(2.0, np.exp(f))),
    "LogNormal": (sgp.LogNormal(), lambda g, f: np.exp(_noisy(g, f))),
    "Beta": (sgp.Beta(), lambda g, f: g.beta(3 * np.exp(f), 3.0)),
    "NegativeBinomial": (
        sgp.NegativeBinomial(), lambda g, f: g.poisson(np.exp(f) * g.gamma(2, 0.5, len(f))) * 1.0
    ),
    "Binomial": (sgp.Binomial(5), lambda g, f: g.binomial(5, expit(f)) * 1.0),
    "Exponential": (sgp.Exponential(), lambda g, f: g.exponential(np.exp(f))),
    "Dirichlet": (sgp.Dirichlet(3), _shares),
    "Multinomial": (sgp.Multinomial(3), _counts),
    "Weighted": (
        sgp.Weighted(sgp.Gaussian()), _with(lambda g, n: g.uniform(0.5, 2.0, n))(_noisy)
    ),
    "Censored": (
        sgp.Censored(sgp.StudentT()), _with(lambda g, n: g.integers(-1, 2, n) * 1.0)(_noisy)
    ),
}  # fmt: skip


def draw(generator, names, low, high, rows=12, width=1):
    """(channel, inputs, observations) of channels of these families."""
    parts = []
    for d, name in enumerate(names):
        x = generator.uniform(low, high, (rows, width))
        f = np.sin(2 * x[:, 0] + d) + 0.5 * np.sum(x[:, 1:], axis=1)
        parts.append((d, x, FAMILIES[name][1](generator, f)))
    return parts


def started(names, latents, parts) -> MultiTaskGP:
    """The model that would start from such data."""
    channels = {f"{d}": FAMILIES[name][0] for d, name in enumerate(names)}
    specification = Specification(channels, latents)
    x = np.concatenate([x for _, x, _ in parts])
    columns = [f"x{i}" for i in range(x.shape[1])]
    model = specification.model(x, parts[0][2], columns)
    own = tuple(specification.channel(f"{d}", y) for d, _, y in parts)
    return replaced(model, channels=own)
