"""The noise of a lone Gaussian channel: learned from a stream as from all data together."""

import numpy as np
import pytest
from tests._reference import build, dense

import streamgp as sgp
from streamgp.inference import noise
from streamgp.inference.learner import Learner
from streamgp.inference.posterior import condition
from streamgp.inference.vem import VEM
from streamgp.parameters import replaced, unwrap

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 6, 120)
# The first part hardly shows how noisy the channel is.
Y = np.sin(X) + np.where(np.arange(120) < 40, 0.05, 0.6) * GENERATOR.normal(size=120)
Z = np.linspace(0, 6, 9)


def start(learner):
    likelihood = build.gaussian(0.3, trainable=True)
    model = build.model([build.channel(likelihood, [[1.0]], 0.2)], (1.2,))
    return learner.init(model, build.points(Z))


def rows(begin, end):
    return build.rows((0, X[begin:end], Y[begin:end]))


def test_in_parts_as_in_one_with_the_noise_learned():
    """Kernel and points fixed: the noise and the posterior of all the data at once."""
    learner = Learner(learning=VEM(evaluations=100))
    whole, _ = learner.step(start(learner), rows(0, 120))
    state = start(learner)
    for begin in range(0, 120, 40):
        state, _ = learner.step(state, rows(begin, begin + 40))
    wanted = noise.noise_of(whole.plain)
    assert noise.noise_of(state.plain) == pytest.approx(wanted, rel=1e-3)
    for got, all_at_once in zip(
        learner.predict(state, Z[:, None], 0), learner.predict(whole, Z[:, None], 0), strict=True
    ):
        np.testing.assert_allclose(got, all_at_once, atol=2e-3)


def test_past_data_follow_the_noise_exactly():
    """Site and energy give the collapsed bound of the past under any noise (dense oracle)."""
    learner = Learner(learning=VEM(evaluations=1))
    state, _ = learner.step(start(learner), rows(0, 40))
    for other in (0.1, 0.9):
        channel = replaced(
            state.model.channels[0], likelihood=build.gaussian(other, trainable=True)
        )
        new = unwrap(replaced(state.model, channels=(channel,)))
        site = state.site.scaled(noise.strength(state.plain, new))
        got = noise.past(new, state.count, state.energy) - 20 * np.log(2 * np.pi)
        got += condition(site).log_evidence
        k_zz = dense.with_nugget(dense.rbf(Z[:, None], Z[:, None], 1.2))
        k_zx = dense.rbf(Z[:, None], X[:40, None], 1.2)
        *_, wanted = dense.sparse_gp(k_zz, k_zx, np.ones(40), Y[:40] - 0.2, np.full(40, other**2))
        assert got == pytest.approx(wanted, rel=1e-7)


def test_the_slope_by_the_noise():
    plain = unwrap(start(Learner()).model)

    def past(sigma):
        likelihood = replaced(plain.channels[0].likelihood, noise=sigma[0])
        other = replaced(plain, channels=(replaced(plain.channels[0], likelihood=likelihood),))
        return noise.past(other, 37.5, 12.0)

    wanted = build.slopes(past, np.array([0.3]), 1e-4)
    assert noise.past_slope(plain, 37.5, 12.0) == pytest.approx(wanted[0], rel=1e-8)


def test_only_a_lone_conjugate_channel_with_fixed_weights_qualifies():
    lone = build.channel(build.gaussian(0.3, trainable=True), [[1.0]])
    assert noise.is_exact(build.model([lone]))
    assert not noise.is_exact(build.model([lone, lone]))
    assert not noise.is_exact(build.model([build.channel(build.gaussian(0.3), [[1.0]])]))
    assert not noise.is_exact(build.model([build.channel(sgp.Bernoulli(), [[1.0]])]))
    weighted = build.channel(build.gaussian(0.3, trainable=True), [[1.0]], trainable=True)
    assert not noise.is_exact(build.model([weighted]))
    trained = build.gaussian(0.3, trainable=True)
    for further in (replaced(trained, error=True), sgp.Weighted(trained)):
        assert not noise.is_exact(build.model([build.channel(further, [[1.0]])]))


def test_what_is_known_of_the_noise_survives_a_second_channel():
    x = np.linspace(0, 6, 100)
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(Z))
    model.update(x, np.sin(x) + 0.4 * GENERATOR.normal(size=100))
    before = model.hyperparameters["channels"]["y"]["noise"]
    model.add_channel("other", sgp.Gaussian())
    precision = model.state.memory.precision
    assert precision[2, 2] == pytest.approx(200, rel=0.3)  # 2N in log σ; the kernel has two
    model.update({"other": (x, np.cos(x) + 0.1 * GENERATOR.normal(size=100))})
    assert model.hyperparameters["channels"]["y"]["noise"] == pytest.approx(before, rel=0.1)
