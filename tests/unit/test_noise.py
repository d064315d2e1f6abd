"""The noise of a lone Gaussian channel: learned from a stream as from all data together."""

import equinox as eqx
import numpy as np
import paramax
import pytest
from tests._reference import build, dense

import streamgp as sgp
from streamgp.data import pack
from streamgp.inference import noise
from streamgp.inference.learner import VEM, Learner

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 6, 120)
# The first part hardly shows how noisy the channel is.
Y = np.sin(X) + np.where(np.arange(120) < 40, 0.05, 0.6) * GENERATOR.normal(size=120)
Z = np.linspace(0, 6, 9)


def start(learner):
    likelihood = build.gaussian(0.3, trainable=True)
    model = build.model([build.channel(likelihood, [[1.0]], 0.2)], (1.2,))
    return learner.init(model, build.inducing(Z))


def batch(part):
    return pack([(0, X[part, None], Y[part])])


def learned_noise(state):
    return float(paramax.unwrap(state.model).channels[0].likelihood.noise)


def test_in_parts_as_in_one_with_the_noise_learned():
    """Kernel and points fixed: the noise and the posterior of all the data at once."""
    learner = Learner(learning=VEM(evaluations=100))
    whole, _ = build.step(learner, start(learner), batch(slice(0, 120)))
    state = start(learner)
    for begin in range(0, 120, 40):
        state, _ = build.step(learner, state, batch(slice(begin, begin + 40)))
    assert learned_noise(state) == pytest.approx(learned_noise(whole), rel=1e-3)
    for got, wanted in zip(
        build.predict(learner, state, Z[:, None]),
        build.predict(learner, whole, Z[:, None]),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, atol=2e-3)


def test_past_data_follow_the_noise_exactly():
    """Site and energy give the collapsed bound of the past under any noise (dense oracle)."""
    learner = Learner(learning=VEM(evaluations=1))
    state, _ = build.step(learner, start(learner), batch(slice(0, 40)))
    for other in (0.1, 0.9):
        model = eqx.tree_at(
            lambda m: m.channels[0].likelihood, state.model, build.gaussian(other, trainable=True)
        )
        old, new = paramax.unwrap(state.model), paramax.unwrap(model)
        site = noise.rescaled(state.site, old, new)
        got = noise.past(new, state.count, state.energy) - 20 * np.log(2 * np.pi)
        got += sgp.Learner().condition(eqx.tree_at(lambda s: s.site, state, site)).log_evidence
        k_zz = dense.rbf(Z[:, None], Z[:, None], 1.2) + dense.NUGGET * np.eye(9)
        k_zx = dense.rbf(Z[:, None], X[:40, None], 1.2)
        *_, wanted = dense.sparse_gp(k_zz, k_zx, np.ones(40), Y[:40] - 0.2, np.full(40, other**2))
        assert float(got) == pytest.approx(float(wanted), rel=1e-7)


def test_only_a_lone_conjugate_channel_with_fixed_weights_qualifies():
    lone = build.channel(build.gaussian(0.3, trainable=True), [[1.0]])
    assert noise.is_exact(build.model([lone]))
    assert not noise.is_exact(build.model([lone, lone]))
    assert not noise.is_exact(build.model([build.channel(build.gaussian(0.3), [[1.0]])]))
    assert not noise.is_exact(build.model([build.channel(sgp.Bernoulli(), [[1.0]])]))
    weighted = build.channel(build.gaussian(0.3, trainable=True), [[1.0]], trainable=True)
    assert not noise.is_exact(build.model([weighted]))


def test_what_is_known_of_the_noise_survives_a_second_channel():
    x = np.linspace(0, 6, 100)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(Z))
    model.update(x, np.sin(x) + 0.4 * GENERATOR.normal(size=100))
    before = model.hyperparameters["channels"]["y"]["noise"]
    model.add_channel("other", sgp.Gaussian())
    precision = np.asarray(model.state.memory.precision)
    assert precision[2, 2] == pytest.approx(200, rel=0.3)  # 2N in log σ; the kernel has two
    model.update({"other": (x, np.cos(x) + 0.1 * GENERATOR.normal(size=100))})
    assert model.hyperparameters["channels"]["y"]["noise"] == pytest.approx(before, rel=0.1)
