"""Rows that are not conjugate are kept with quadratics that keep their promise."""

import numpy as np
import pytest
from tests._reference import build, families

import streamgp as sgp
from streamgp.inference.learner import Learner
from streamgp.inference.trust import exaggeration, missing, trusted
from streamgp.inference.vem import VEM
from streamgp.model.means import Constant
from streamgp.parameters import unwrap

LOCAL = [name for name, (family, _) in families.FAMILIES.items() if not family.conjugate]


def rows_anywhere(name):
    """Rows of a family with means that may be far from what they say, and their quadratics."""
    generator = np.random.default_rng(0)
    parts = families.draw(generator, [name], 0, 4, rows=40)
    channel = unwrap(families.started([name], 2, parts).channels[0])
    y, latents = parts[0][2], channel.likelihood.latents
    mean = channel.offset + 3 * generator.normal(size=(40, latents))
    half = 0.5 * generator.normal(size=(40, latents, latents))
    covariance = half @ np.swapaxes(half, 1, 2) + 0.01 * np.eye(latents)
    _, precision = channel.likelihood.curvature(y, mean, covariance)
    return channel.likelihood, y, mean, covariance, precision


def height(precision, slope):
    """How high the top of each row's quadratic is."""
    step = np.linalg.solve(precision, slope[:, :, None])[:, :, 0]
    return 0.5 * np.sum(slope * step, axis=1), step


@pytest.mark.parametrize("name", LOCAL)
def test_what_is_kept_promises_no_more_than_a_row_can_gain(name):
    """On the way to the top of its own quadratic; and no less, if that promised more."""
    likelihood, y, mean, covariance, precision = rows_anywhere(name)
    more = missing(likelihood, y, mean, covariance, precision)
    assert np.linalg.eigvalsh(more).min() > -1e-9 * (1 + np.abs(more).max())
    here = likelihood.expected(y, mean, covariance)
    flattest = 1e-8 * np.sum(here.by_mean**2, axis=1)[:, None, None] * np.eye(mean.shape[1])
    own, step = height(precision + flattest, here.by_mean)
    gains = []
    for part in 2.0 ** -np.arange(40):
        there = likelihood.expected(y, mean + part * step, covariance).value
        gains.append(np.where(np.isfinite(there), there - here.value, -np.inf))
    gain = np.max(gains, axis=0)
    kept, _ = height(precision + flattest + more, here.by_mean)
    assert name == "Probit" or np.any(own > 1.01 * gain)  # or nothing is to be held back
    np.testing.assert_allclose(kept, np.minimum(own, gain), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", LOCAL)
def test_curvature_is_added_along_the_slope_only(name):
    likelihood, y, mean, covariance, precision = rows_anywhere(name)
    more = missing(likelihood, y, mean, covariance, precision)
    slope = likelihood.expected(y, mean, covariance).by_mean
    size = np.sum(slope**2, axis=1)[:, None, None]
    along = slope[:, :, None] * slope[:, None, :] / np.where(size > 0, size, 1.0)
    wanted = np.trace(more, axis1=1, axis2=2)[:, None, None] * along
    np.testing.assert_allclose(more, wanted, rtol=1e-7, atol=1e-9 * np.max(np.abs(more)))


def test_a_row_that_was_thought_impossible_has_its_top_in_sight():
    """A class of which nothing is left has a slope of one and next to no curvature."""
    y, mean, covariance = np.ones(1), np.full((1, 1), -60.0), np.full((1, 1, 1), 0.01)
    family = sgp.Bernoulli()
    slope, precision = family.curvature(y, mean, covariance)
    assert slope[0, 0] / precision[0, 0, 0] > 1e6
    more = missing(family, y, mean, covariance, precision)
    assert 10 < slope[0, 0] / (precision + more)[0, 0, 0] < 200


def test_a_quadratic_that_promises_too_little_stays():
    """Few counts where many were thought likely: the curvature is that of the many."""
    family, y, mean = sgp.Poisson(), np.zeros(1), np.full((1, 1), 3.0)
    covariance = np.full((1, 1, 1), 0.01)
    _, precision = family.curvature(y, mean, covariance)
    np.testing.assert_array_equal(missing(family, y, mean, covariance, precision), 0.0)


NAMES = ("Gaussian", "Bernoulli", "Categorical")


def start(learner, trainable):
    generator = np.random.default_rng(2)
    channels = []
    for name in NAMES:
        family = build.gaussian(0.3, True) if name == "Gaussian" else families.FAMILIES[name][0]
        weights = 2 * generator.normal(size=(family.latents, 2))
        channels.append(build.channel(family, weights, trainable=trainable, mean=Constant()))
    z = np.linspace(0, 4, 5)
    return learner.init(build.model(channels, (1.0, 0.7)), build.points(z, z))


def test_the_mean_of_the_posterior_stays_and_it_is_no_wider():
    """Slopes are those of the rows' own sites."""
    learner = Learner(VEM(evaluations=1), e_tolerance=1e-9, e_rounds=500)
    blank = start(learner, trainable=True)
    rows = build.rows(*families.draw(np.random.default_rng(0), NAMES, 0, 4))
    own, kept = build.as_fitted(learner, blank, rows), learner.step(blank, rows)[0]
    np.testing.assert_allclose(kept.posterior.mean, own.posterior.mean, atol=1e-5)
    narrower = own.posterior.covariance - kept.posterior.covariance
    assert np.linalg.eigvalsh(narrower).min() > -1e-8
    assert np.max(narrower) > 1e-6


def test_rows_of_fixed_kernels_and_weights_are_kept_as_they_are():
    learner = Learner(None)
    blank = start(learner, trainable=False)
    assert [exaggeration(blank.model, d) for d in range(3)] == [np.inf] * 3
    rows = build.rows(*families.draw(np.random.default_rng(0), NAMES, 0, 4))
    trial, fit, *_ = build.learned(learner, blank, rows)
    assert trusted(trial.wrapped, trial.setting, fit.rows, fit.marginals) is fit.rows
    kept, _ = learner.step(blank, rows)
    got, wanted = kept.site.precision, trial.setting.site(fit.rows).precision
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9 * (1 + np.max(np.abs(wanted))))


def test_conjugate_rows_are_kept_as_they_are():
    learner = Learner(None)
    blank = start(learner, trainable=True)
    assert [exaggeration(blank.model, d) for d in range(3)] == [np.inf, 1.0, 1.0]
    rows = build.rows(*families.draw(np.random.default_rng(0), NAMES, 0, 4))
    trial, fit, *_ = build.learned(learner, blank, rows)
    kept = trusted(trial.wrapped, trial.setting, fit.rows, fit.marginals)
    group = trial.setting.batch.groups[0]
    assert group.channel == 0
    np.testing.assert_array_equal(kept.linear[group.flat], fit.rows.linear[group.flat])
    got, wanted = (own.precision[group.run][group.within] for own in (kept, fit.rows))
    np.testing.assert_array_equal(got, wanted)
