"""Learning keeps its promises in every family, on data that are heavy-tailed and badly scaled.

It never ends at a worse bound than it began from, and never with a scale far from that of the data.
"""

import copy

import numpy as np
import pytest
from tests.families import FAMILIES

import streamgp as sgp
from streamgp.inference.beliefs import Beliefs
from streamgp.likelihoods import support
from streamgp.parameters import free_vector, unwrap

BATCHES = (60, 15, 15)
FARTHEST = 100.0  # times the spread of the data


def drawn(family, seed):
    """Observations of a family: a slow function, with jumps now and then that are far too large."""
    rng = np.random.default_rng(seed)
    count = sum(BATCHES)
    if family.draw is None:
        return rng.permutation(family.rows(count))
    slow = np.sin(np.arange(count) / 8.0)[:, None]
    jumps = np.clip(0.3 * rng.standard_t(1.2, (count, family.likelihood.latents)), -8.0, 8.0)
    y = np.asarray(family.draw(rng, family.centre + slow + jumps), float)
    if isinstance(family.likelihood.support, support.Real):
        y = 1e4 + 1e3 * (y + rng.standard_t(1.2, count))  # the family's own numbers are for 1
    elif isinstance(family.likelihood.support, support.Positive):
        y = np.clip(y, 1e-6, None)
    return y


def worth(model, anchor, report):
    """The bound of a batch, with what was believed of hyperparameters beside it."""
    after = model.state
    beliefs = Beliefs.of(after.model, anchor.model, anchor.memory, after.heard, new=1.0, past=0.0)
    return report.bound + beliefs.value(free_vector(after.model))


def scales(model):
    """Deviations of the latent parameters, and of the noise where it has that scale."""
    plain = unwrap(model.state.model)
    [channel] = plain.channels
    variances = [kernel.diagonal(np.zeros((1, 1)))[0] for kernel in plain.kernels]
    found = [np.sqrt(channel.loadings**2 @ variances).max()]
    found += [float(getattr(channel.likelihood, n, 0.0)) for n in ("noise", "scale")]
    return found


def learned(name, engine):
    """A life in batches: after each, the model, and one that kept its hyperparameters there."""
    family = FAMILIES[name]
    y = drawn(family, 0)
    x = np.arange(len(y), dtype=float)
    model = sgp.ContinualGP(
        family.likelihood,
        engine=engine,
        inducing=sgp.Fixed(np.linspace(0.0, len(y), 12)) if engine == "dense" else sgp.Adaptive(),
        learning=sgp.VEM(cells=0),  # cells would see the past anew where hyperparameters move
    )
    for own in np.split(np.arange(len(y)), np.cumsum(BATCHES)[:-1]):
        kept = copy.deepcopy(model)
        before = kept.update(x[own], y[own], learn=False)
        report = model.update(x[own], y[own])
        yield model, report, kept, before


@pytest.mark.parametrize("engine", ["chain", "dense"])
@pytest.mark.parametrize("name", FAMILIES)
def test_it_never_ends_worse_than_it_began_nor_far_from_the_data(name, engine):
    y = drawn(FAMILIES[name], 0)
    spread = max(1.0, float(np.std(y.reshape(len(y), -1)[:, 0])))
    for model, report, kept, before in learned(name, engine):
        print(name, engine, worth(model, kept, report), before.bound, scales(model), spread)
