"""Several channels: what is learned later reinterprets what was learned before."""

import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.inference.sparse.learner import Learner
from streamgp.inference.vem import VEM
from streamgp.model.means import Constant, Mean
from streamgp.parameters import Positive, replaced

SPREAD = 5.0
Z = (np.linspace(0, 6, 9), np.linspace(0.2, 5.8, 7))
TEST = np.linspace(0, 6, 25)[:, None]


class Line(Mean):
    """A straight line, as a user might write one."""

    spreads = (None, 2.0)

    def __call__(self, x):
        return np.concatenate([np.ones((len(x), 1)), x / 6], axis=1)


LEVEL = Constant()


def start(learner, channels=4, mean=LEVEL):
    """Gaussian channels of two functions, with everything but the kernels to be learned."""
    generator = np.random.default_rng(1)
    made = []
    for _ in range(channels):
        own = build.channel(
            build.gaussian(0.5, trainable=True), generator.normal(size=(1, 2)), 0.3,
            trainable=True, mean=mean, spread=SPREAD,
        )  # fmt: skip
        made.append(replaced(own, scale=Positive(np.ones(1))))
    return learner.init(build.model(made, (1.1, 0.8)), build.points(*Z))


def data(channels=4, rows=40, seed=0):
    generator = np.random.default_rng(seed)
    u = [lambda x: np.sin(1.5 * x), lambda x: np.cos(2.2 * x)]
    weights = generator.normal(size=(channels, 2))
    parts = []
    for d in range(channels):
        x = generator.uniform(0, 6, rows)
        f = weights[d, 0] * u[0](x) + weights[d, 1] * u[1](x) + 2 * d
        parts.append((d, x, f + 0.2 * generator.normal(size=rows)))
    return parts


def batches(parts, count):
    for k in range(count):
        yield build.rows(*[(d, x[k::count], y[k::count]) for d, x, y in parts])


@pytest.mark.parametrize("mean", [Constant(), Line()], ids=["level", "line"])
def test_six_batches_are_one_with_weights_noises_and_levels_learned(mean):
    learner = Learner(learning=VEM(evaluations=400))
    parts = data()
    state, total = start(learner, mean=mean), 0.0
    for rows in batches(parts, 6):
        state, info = learner.step(state, rows)
        total += info.bound
    fixed = Learner(learning=None)
    blank = start(fixed, mean=mean).replace(model=state.model)
    whole, all_at_once = fixed.step(blank, build.rows(*parts))
    assert total == pytest.approx(all_at_once.bound, rel=1e-9, abs=1e-8)
    for d in range(4):
        for got, wanted in zip(
            learner.predict(state, TEST, d), fixed.predict(whole, TEST, d), strict=True
        ):
            np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8)
    offline, _ = learner.step(start(learner, mean=mean), build.rows(*parts))
    held_out = build.rows(*data(rows=50, seed=0))
    scores = [np.mean(learner.log_predictive(s, held_out)) for s in (state, offline)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


def test_levels_are_those_of_the_dense_gp_with_a_constant_kernel():
    learner = Learner(learning=None, weight_uncertainty=False)
    parts = data(channels=2, rows=12)
    everywhere = np.concatenate([x for _, x, _ in parts])
    model = start(learner, 2).model
    state = learner.init(model, build.points(everywhere, everywhere))
    state, info = learner.step(state, build.rows(*parts))
    channel, x = np.repeat([0, 1], 12), everywhere[:, None]
    weights = np.concatenate([c.loadings for c in state.plain.channels])

    def covariance(a, ca, b, cb):
        k = [dense.rbf(a, b, 1.1), dense.rbf(a, b, 0.8)]
        mixed = sum(np.outer(weights[ca, q], weights[cb, q]) * k[q] for q in range(2))
        return mixed + SPREAD**2 * (ca[:, None] == cb[None, :])

    y = np.concatenate([y for _, _, y in parts]) - 0.3
    for d in range(2):
        at = np.full(len(TEST), d)
        mean, variance, evidence = dense.exact_gp(
            covariance(x, channel, x, channel), covariance(x, channel, TEST, at),
            covariance(TEST, at, TEST, at), y, np.full(24, 0.25),
        )  # fmt: skip
        got_mean, got_variance = learner.predict(state, TEST, d)
        np.testing.assert_allclose(got_mean[:, 0], mean + 0.3, atol=1e-6)
        np.testing.assert_allclose(got_variance[:, 0, 0], np.diag(variance), atol=1e-6)
        assert info.bound == pytest.approx(evidence, rel=1e-6)
