"""Natural-gradient rounds: exact in one for Gaussian channels, uphill for all others."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, gammaln
from tests._reference import build, dense

from streamgp.inference.e_step import e_step, fit_rows, natural_step, no_sites
from streamgp.inference.posterior import condition, marginals
from streamgp.inference.sites import RowSites, Site, aggregate
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Prior
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.likelihoods import Bernoulli, Categorical, Poisson
from streamgp.model.means import NONE, Constant
from streamgp.model.mixing import Mixed
from streamgp.parameters import unwrap

Z = np.linspace(-3, 3, 8)
LEVEL = Constant()


def no_site(features):
    """Nothing carried."""
    size = features.design.shape[1]
    return Site(np.zeros(size), np.zeros((size, size)))


def problem(likelihood, draw, latents=1, rows=40, mean=LEVEL):
    """Everything an E step takes, for one channel of that likelihood."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, (rows, 1))
    y = draw(generator, np.sin(2 * x[:, 0]))
    weights = generator.normal(size=(likelihood.latents, latents))
    channel = build.channel(likelihood, weights, mean=mean, spread=2.0)
    model = unwrap(build.model([channel], np.linspace(0.7, 1.2, latents)))
    batch = model.batch(build.rows((0, x, y)))
    projection = Prior.of(model, build.points(*[Z] * latents)).project(batch.x)
    features = Mixed.of(model, batch).features(projection)
    return SparseSetting(model, batch, features, no_site(features))


CASES = {
    "bernoulli": (Bernoulli(), lambda g, f: (g.uniform(size=len(f)) < expit(3 * f)) * 1.0),
    "probit": (Bernoulli("probit"), lambda g, f: (f + 0.1 * g.normal(size=len(f)) > 0) * 1.0),
    "poisson": (Poisson(), lambda g, f: g.poisson(np.exp(2 * f)).astype(float)),
    "large counts": (Poisson(), lambda g, f: g.poisson(np.exp(7 + f)).astype(float)),
    "categorical": (Categorical(3), lambda g, f: np.digitize(f, [-0.5, 0.5]).astype(float)),
}


def none(setting):
    return no_sites(setting)


def random_rows(setting, seed=0):
    generator = np.random.default_rng(seed)
    blank = none(setting)
    spread = tuple(
        np.abs(generator.normal(size=(len(p), 1, 1))) * np.eye(p.shape[1]) for p in blank.precision
    )
    return RowSites(generator.normal(size=blank.linear.shape), spread)


def slope_of_bound(setting, rows, towards, step=1e-4):
    """The derivative of the bound as the rows' sites move in a direction."""

    def bound(length):
        precision = zip(rows.precision, towards.precision, strict=True)
        moved = RowSites(
            rows.linear + length * towards.linear, tuple(p + length * d for p, d in precision)
        )
        return fit_rows(setting, moved).bound

    return (bound(step) - bound(-step)) / (2 * step)


def test_one_natural_step_from_anywhere_is_the_gaussian_optimum():
    setting = problem(build.gaussian(0.3), lambda g, f: f, latents=2)
    anywhere = random_rows(setting)
    once = natural_step(setting, fit_rows(setting, anywhere))
    again = natural_step(setting, fit_rows(setting, once))
    np.testing.assert_allclose(again.linear, once.linear, atol=1e-9)
    for seed in range(1, 6):
        direction = random_rows(setting, seed)
        assert abs(slope_of_bound(setting, once, direction)) < 1e-6
        assert abs(slope_of_bound(setting, anywhere, direction)) > 1e-2


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mean", [NONE, LEVEL], ids=["no mean", "level"])
def test_the_bound_never_falls_and_settles(name, mean):
    setting = problem(*CASES[name], latents=2, mean=mean)
    rows = none(setting)
    bounds = [e_step(setting, rows, rounds=n, tolerance=0.0)[0].bound for n in range(0, 40, 3)]
    assert np.isfinite(bounds).all()
    assert (np.diff(bounds) >= -1e-8 * np.abs(bounds[0])).all()
    assert bounds[-1] - bounds[0] > 1.0
    assert bounds[-1] - bounds[-3] < 1e-3 * (bounds[-1] - bounds[0])


# log p(y|f) with its first two derivatives by f
DENSITIES = {
    "bernoulli": (
        lambda y, f: y * f - np.logaddexp(0, f),
        lambda y, f: y - expit(f),
        lambda y, f: -expit(f) * expit(-f) + 0 * y,
    ),
    "poisson": (
        lambda y, f: y * f - np.exp(f) - gammaln(y + 1),
        lambda y, f: y - np.exp(f),
        lambda y, f: -np.exp(f) + 0 * y,
    ),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_the_fixed_point_is_the_best_gaussian(name):
    """Against a dense optimiser of the same bound over a mean and a Cholesky factor."""
    setting = problem(*CASES[name], rows=25)
    fit, _ = e_step(setting, none(setting), rounds=60, tolerance=1e-12)
    x, y = setting.batch.x, setting.batch.groups[0].y[:, None]
    weight = float(setting.model.channels[0].loadings[0, 0])
    z, size = Z[:, None], len(Z)
    k_zz = dense.with_nugget(dense.rbf(z, z, 0.7))
    design, slack = dense.design(k_zz, dense.rbf(z, x, 0.7), np.ones(25))
    design, slack = weight * design, weight**2 * slack
    design, size = np.append(design, np.full((25, 1), 2.0), axis=1), size + 1  # the level
    lower = np.tril_indices(size)
    density, slope, bend = DENSITIES[name]

    def loss(point):
        mean, root = point[:size], np.zeros((size, size))
        root[lower] = point[size:]
        spread = design @ root
        at = design @ mean, np.sum(spread**2, axis=1) + slack
        value, by_mean, by_variance = (
            dense.expected(lambda f, part=part: part(y, f), *at) for part in (density, slope, bend)
        )
        kl = 0.5 * (np.sum(root**2) + mean @ mean - size) - np.sum(np.log(np.abs(np.diag(root))))
        by_root = root - np.diag(1 / np.diag(root)) - design.T @ (by_variance[:, None] * spread)
        return kl - value.sum(), np.concatenate([mean - design.T @ by_mean, by_root[lower]])

    start = np.concatenate([np.zeros(size), np.eye(size)[lower]])
    found = minimize(loss, start, jac=True, options={"maxiter": 2000})
    np.testing.assert_allclose(fit.bound, -found.fun, rtol=1e-6)


@pytest.mark.parametrize("likelihood", [build.gaussian(0.3), Categorical(3)], ids=["J1", "J3"])
def test_marginals_are_those_of_the_dense_posterior(likelihood):
    setting = problem(likelihood, lambda g, f: 0 * f, latents=2)
    site = aggregate(setting.batch, random_rows(setting), setting.features)
    got = marginals(setting.batch, condition(site), setting.features)
    covariance = np.linalg.inv(np.eye(2 * len(Z) + likelihood.latents) + site.precision)
    a = setting.features.design
    np.testing.assert_allclose(got.mean, a @ covariance @ site.linear, atol=1e-10)
    j = likelihood.latents
    whole = (a @ covariance @ a.T).reshape(40, j, 40, j)
    wanted = np.stack([whole[n, :, n] for n in range(40)]) + setting.features.slack[0]
    np.testing.assert_allclose(got.covariance[0], wanted, atol=1e-10)


def test_both_kinds_of_channel_in_one_batch():
    """A Gaussian and a Poisson channel together: both narrow what is known of f."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, (30, 1))
    channels = [build.channel(build.gaussian(0.3), [[1.0]]), build.channel(Poisson(), [[1.5]])]
    learner = Learner(learning=None, e_tolerance=1e-10, e_rounds=60)
    state = learner.init(build.model(channels), build.points(Z))
    f = np.sin(2 * x[:, 0])
    counts = generator.poisson(np.exp(1.5 * f)).astype(float)
    both, _ = learner.step(state, build.rows((0, x, f), (1, x, counts)))
    one, _ = learner.step(state, build.rows((0, x, f)))
    variance = [learner.predict(s, x, 1)[1] for s in (both, one)]
    assert (variance[0] < variance[1]).all()
    mean, _ = learner.predict(both, x, 0)
    np.testing.assert_allclose(mean[:, 0], f, atol=0.4)


def test_rows_of_any_order_make_the_same_batch():
    """Channels with one, two and three latent parameters, shuffled: each row keeps its own."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, (12, 1))
    channels = [
        build.channel(Categorical(3), generator.normal(size=(3, 2))),
        build.channel(build.gaussian(0.3), [[1.0, 0.3]]),
        build.channel(Poisson(), [[0.5, -0.3]]),
    ]
    learner = Learner(learning=None, e_tolerance=1e-10)
    state = learner.init(build.model(channels, (1.0, 0.7)), build.points(Z, Z))
    f = np.sin(2 * x[:, 0])
    rows = build.rows((0, x, np.arange(12.0) % 3), (1, x, f), (2, x, np.round(np.exp(f))))
    shuffle = generator.permutation(36)
    whole, info = learner.step(state, rows)
    mixed, other = learner.step(state, rows.take(shuffle))
    np.testing.assert_allclose(other.log_predictive, info.log_predictive[shuffle], atol=1e-12)
    np.testing.assert_allclose(other.bound, info.bound, rtol=1e-9)
    np.testing.assert_allclose(mixed.site.precision, whole.site.precision, atol=1e-6)
