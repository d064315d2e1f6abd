"""What data leave open about mixing weights: a regression on the latent functions."""

import dataclasses

import numpy as np
import pytest
from tests._reference import build, dense, families

import streamgp as sgp
from streamgp.inference.sparse.learner import Learner
from streamgp.model.means import Constant
from streamgp.parameters import Positive, fixed, replaced

NAMES = ("Gaussian", "Categorical", "Gaussian")
LENGTHSCALES = (1.0, 0.7)
Z = (np.linspace(0, 4, 6), np.linspace(0.2, 4.2, 5))
TEST = np.linspace(-1, 6, 9)[:, None]


def channels():
    generator = np.random.default_rng(2)
    found = []
    for name in NAMES:
        family = build.gaussian(0.3, True) if name == "Gaussian" else families.FAMILIES[name][0]
        weights = generator.normal(size=(family.latents, 2))
        own = build.channel(family, weights, trainable=True, mean=Constant(), spread=2.0)
        found.append(replaced(own, scale=Positive(1.0 + 0.3 * np.arange(family.latents))))
    return found


def learned(learner, parts=None):
    blank = learner.init(build.model(channels(), LENGTHSCALES), build.points(*Z))
    parts = families.draw(np.random.default_rng(0), NAMES, 0, 4) if parts is None else parts
    rows = build.rows(*parts)
    return blank, learner.step(blank, rows)[0], rows


def moments_of_latents(state, x):
    """E_q[u] and E_q[u uᵀ] of both latent functions at some inputs."""
    features, left = [], []
    for z, lengthscale in zip(Z, LENGTHSCALES, strict=True):
        gram = dense.with_nugget(dense.rbf(z[:, None], z[:, None], lengthscale))
        a, own = dense.design(gram, dense.rbf(z[:, None], x, lengthscale), np.ones(len(x)))
        features.append(a)
        left.append(own)
    size = sum(map(len, Z))
    covariance = np.linalg.inv(np.eye(len(state.site.linear)) + state.site.precision)
    mean = (covariance @ state.site.linear)[:size]
    covariance = covariance[:size, :size]
    first, second = np.zeros((len(x), 2)), np.zeros((len(x), 2, 2))
    for n in range(len(x)):
        a = np.zeros((2, size))
        a[0, : len(Z[0])], a[1, len(Z[0]) :] = features[0][n], features[1][n]
        first[n] = a @ mean
        second[n] = a @ covariance @ a.T + np.outer(first[n], first[n])
        second[n] += np.diag([left[0][n], left[1][n]])
    return first, second


def dense_covariances(blank, state, learner, rows):
    """The inverse of the prior's precision and of what the rows say, channel by channel.

    A channel's site does not tell latent parameters apart: each of them is taken to have the
    average of what the rows say of all of them.
    """
    learned = build.learned(learner, blank, rows)
    batch, found = learned.trial.setting.batch, []
    for d, (channel, plain) in enumerate(
        zip(state.model.channels, state.plain.channels, strict=True)
    ):
        count, loadings = len(plain.scale), plain.loadings
        spread = np.repeat(channel.weights.spread * plain.scale, 2)
        precision = np.zeros((count, 2, count, 2))
        along = loadings / np.sqrt(np.sum(loadings**2, axis=0))
        for group in batch.groups:
            if group.channel == d:
                _, second = moments_of_latents(state, batch.x[group.rows])
                own = learned.fit.rows.precision[group.run][group.within]
                said = np.einsum("njk,jq,kr->nqr", own, along, along) * (along.T @ along)
                precision += np.einsum("jk,nqr,nqr->jqkr", np.eye(count), said, second)
        flat = precision.reshape(2 * count, 2 * count) + np.diag(spread**-2)
        found.append(np.linalg.inv(flat).reshape(precision.shape))
    return found


def test_it_is_that_of_a_regression_on_the_latent_functions():
    """With loadings of both signs."""
    learner = Learner(None)
    blank, state, rows = learned(learner)
    assert np.min(state.plain.channels[0].loadings) * np.max(state.plain.channels[0].loadings) < 0
    wanted = dense_covariances(blank, state, learner, rows)
    for got, own in zip(state.open_weights, wanted, strict=True):
        np.testing.assert_allclose(got, own, rtol=1e-6, atol=1e-9)
        flat = got.reshape(2 * (np.prod(got.shape[:2]),))
        assert np.linalg.eigvalsh(flat).min() > 0


@pytest.mark.parametrize("channel", range(3))
def test_predictions_are_wider_by_it(channel):
    learner = Learner(None)
    _, state, _ = learned(learner)
    mean, wide = learner.predict(state, TEST, channel)
    same, narrow = dataclasses.replace(learner, weight_uncertainty=False).predict(
        state, TEST, channel
    )
    np.testing.assert_array_equal(mean, same)
    first, _ = moments_of_latents(state, TEST)
    wanted = np.einsum("nq,jqkr,nr->njk", first, state.open_weights[channel], first)
    np.testing.assert_allclose(wide - narrow, wanted, rtol=1e-5, atol=1e-9)
    assert np.max(wanted) > 1e-4


def test_joint_predictions_have_it_between_inputs_too():
    learner = Learner(None)
    _, state, _ = learned(learner)
    known = dataclasses.replace(learner, weight_uncertainty=False)
    mean, wide = learner.predict_joint(state, TEST, [2, 1])
    same, narrow = known.predict_joint(state, TEST, [2, 1])
    np.testing.assert_array_equal(mean, same)
    first, _ = moments_of_latents(state, TEST)
    own = np.einsum("nq,qr,mr->nm", first, state.open_weights[2][0, :, 0], first)
    np.testing.assert_allclose((wide - narrow)[:9, :9], own, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose((wide - narrow)[:9, 9:], 0.0, atol=1e-12)
    for n in range(9):
        block = slice(9 + 3 * n, 12 + 3 * n)
        wanted = learner.predict(state, TEST, 1)[1][n]
        np.testing.assert_allclose(wide[block, block], wanted, atol=1e-10)


def test_more_rows_leave_less_open_and_a_silent_channel_keeps_its_prior():
    learner = Learner(None)
    parts = families.draw(np.random.default_rng(0), NAMES, 0, 4)
    _, some, _ = learned(learner, parts[:2])
    more, _ = learner.step(some, build.rows(*parts[:2]))
    for few, many in zip(some.open_weights[:2], more.open_weights[:2], strict=True):
        count = len(few) * 2
        less = few.reshape(count, count) - many.reshape(count, count)
        assert np.trace(less) > 0
    spread = some.model.channels[2].weights.spread
    silent = some.open_weights[2].reshape(2, 2)
    np.testing.assert_allclose(silent, spread**2 * np.eye(2), rtol=1e-9)


def test_fixed_weights_are_known():
    learner = Learner(None)
    own = build.channel(build.gaussian(0.3), [[1.0, 0.5]])
    state = learner.init(build.model([own], LENGTHSCALES), build.points(*Z))
    state, _ = learner.step(
        state, build.rows(*families.draw(np.random.default_rng(0), NAMES[:1], 0, 4))
    )
    np.testing.assert_array_equal(state.open_weights[0], 0.0)


def test_users_can_leave_it_out():
    x = np.linspace(0, 6, 40)
    wide, narrow = (
        sgp.ContinualGP(
            {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=1, weight_uncertainty=own
        )
        for own in (True, False)
    )
    for model in (wide, narrow):
        model.update({"a": (x, np.sin(x)), "b": (x[:3], np.sin(x[:3]))})
    one, other = (model.predict(x, "b") for model in (wide, narrow))
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    assert np.all(one.std >= other.std)
    assert np.max(one.std / other.std) > 1.02
    assert not sgp.from_bytes(narrow.to_bytes()).learner.weight_uncertainty
    fixed_by_user = sgp.ContinualGP(
        {"a": sgp.Gaussian()}, latents=1, mixing={"a": fixed([[1.0]])}, learning=None
    )
    fixed_by_user.update({"a": (x, np.sin(x))})
    np.testing.assert_array_equal(fixed_by_user.state.open_weights[0], 0.0)
