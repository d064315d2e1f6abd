"""Natural-gradient rounds: exact in one for Gaussian channels, uphill for all others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy.optimize import minimize
from tests._reference import build

from streamgp.data import pack
from streamgp.inference.conditioning import condition, factorise, features, marginals
from streamgp.inference.e_step import e_step, fit_rows, natural_step
from streamgp.inference.learner import Learner
from streamgp.inference.sites import RowSites, aggregate, empty
from streamgp.likelihoods import Bernoulli, Categorical, Poisson

Z = np.linspace(-3, 3, 8)


def problem(likelihood, draw, latents=1, factorised=False, rows=40):
    """Everything an E step takes, for one channel of that likelihood."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, (rows, 1))
    batch = pack([(0, x, draw(generator, np.sin(2 * x[:, 0])))])
    weights = generator.normal(size=(likelihood.latents, latents))
    model = paramax.unwrap(
        build.model([build.channel(likelihood, weights)], np.linspace(0.7, 1.2, latents))
    )
    points = build.inducing(*[Z] * latents)
    chol = factorise(model, points)
    rows_features = features(model, points, chol, batch.x, batch.channel, factorised=factorised)
    size = (latents, len(Z)) if factorised else (1, latents * len(Z))
    return model, batch, rows_features, empty(*size)


def sigmoid(f):
    return 1 / (1 + np.exp(-f))


CASES = {
    "bernoulli": (Bernoulli(), lambda g, f: (g.uniform(size=len(f)) < sigmoid(3 * f)) * 1.0),
    "probit": (Bernoulli("probit"), lambda g, f: (f + 0.1 * g.normal(size=len(f)) > 0) * 1.0),
    "poisson": (Poisson(), lambda g, f: g.poisson(np.exp(2 * f)).astype(float)),
    "large counts": (Poisson(), lambda g, f: g.poisson(np.exp(7 + f)).astype(float)),
    "categorical": (Categorical(3), lambda g, f: np.digitize(f, [-0.5, 0.5]).astype(float)),
}


def no_rows(rows_features):
    n, j, g, _ = rows_features.design.shape
    return RowSites(jnp.zeros((n, j, g)), jnp.zeros((n, j, j)))


def random_rows(rows_features, seed=0):
    n, j, g, _ = rows_features.design.shape
    generator = np.random.default_rng(seed)
    return RowSites(
        jnp.asarray(generator.normal(size=(n, j, g))),
        jnp.asarray(np.abs(generator.normal(size=(n, 1, 1))) * np.eye(j)),
    )


def test_one_natural_step_from_anywhere_is_the_gaussian_optimum():
    setting = problem(build.gaussian(0.3), lambda g, f: f, latents=2)
    rows_features = setting[2]
    anywhere = fit_rows(*setting, random_rows(rows_features))
    once = natural_step(*setting, anywhere)
    fit = fit_rows(*setting, once)
    again = natural_step(*setting, fit)
    np.testing.assert_allclose(again.linear, once.linear, atol=1e-9)
    gradient = jax.grad(lambda rows: fit_rows(*setting, rows).bound)(once)
    np.testing.assert_allclose(gradient.linear, 0.0, atol=1e-8)
    np.testing.assert_allclose(gradient.precision, 0.0, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("factorised", [False, True])
def test_the_bound_never_falls_and_settles(name, factorised):
    setting = problem(*CASES[name], latents=2, factorised=factorised)
    run = eqx.filter_jit(lambda rows, n: e_step(*setting, rows, rounds=n, tolerance=0.0)[0].bound)
    bounds = [float(run(no_rows(setting[2]), jnp.asarray(n))) for n in range(0, 40, 3)]
    assert np.isfinite(bounds).all()
    assert (np.diff(bounds) >= -1e-8 * np.abs(bounds[0])).all()
    assert bounds[-1] - bounds[0] > 1.0
    assert bounds[-1] - bounds[-3] < 1e-3 * (bounds[-1] - bounds[0])


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_the_fixed_point_is_the_best_gaussian(name):
    """Against a dense optimiser of the same bound over a mean and a Cholesky factor."""
    model, batch, rows_features, _ = setting = problem(*CASES[name], rows=25)
    fit, _ = e_step(*setting, no_rows(rows_features), rounds=60, tolerance=1e-12)
    best = float(fit.bound)
    size = len(Z)
    lower = np.tril_indices(size)
    design = rows_features.design[:, 0, 0, :]

    @jax.jit
    @jax.value_and_grad
    def loss(point):
        mean = point[:size]
        root = jnp.zeros((size, size)).at[lower].set(point[size:])
        f = design @ mean
        variance = jnp.sum((design @ root) ** 2, axis=1) + rows_features.slack[:, 0, 0]
        expected = model.per_row(
            lambda likelihood, *row: likelihood.expected_log_density(*row),
            batch, f[:, None], variance[:, None, None],
        )  # fmt: skip
        kl = 0.5 * (jnp.sum(root**2) + mean @ mean - size) - jnp.sum(
            jnp.log(jnp.abs(jnp.diag(root)))
        )
        return kl - jnp.sum(expected)

    start = np.concatenate([np.zeros(size), np.eye(size)[lower]])
    found = minimize(
        lambda p: tuple(map(np.asarray, loss(p))), start, jac=True, options={"maxiter": 2000}
    )
    np.testing.assert_allclose(best, -found.fun, rtol=1e-5)


def test_factorised_blocks_have_the_joint_mean_and_their_own_precision():
    """Mean field on Gaussian channels: the mean and each block of the precision are exact."""
    joint = problem(build.gaussian(0.5), lambda g, f: f, latents=2)
    apart = problem(build.gaussian(0.5), lambda g, f: f, latents=2, factorised=True)
    wanted = condition(
        aggregate(natural_step(*joint, fit_rows(*joint, no_rows(joint[2]))), joint[2])
    )
    fit, rounds = e_step(*apart, no_rows(apart[2]), rounds=400, tolerance=1e-9)
    assert rounds < 400
    site = fit.site
    got = condition(site)
    np.testing.assert_allclose(got.mean.ravel(), wanted.mean.ravel(), atol=5e-4)
    precision = np.asarray(wanted.chol[0] @ wanted.chol[0].T)
    for g, block in enumerate(np.split(np.arange(2 * len(Z)), 2)):
        np.testing.assert_allclose(
            np.eye(len(Z)) + site.precision[g],
            precision[np.ix_(block, block)],
            rtol=1e-8,
            atol=1e-8,
        )


def test_marginals_are_those_of_the_dense_posterior():
    rows_features = problem(build.gaussian(0.3), lambda g, f: f, latents=2)[2]
    site = aggregate(random_rows(rows_features), rows_features)
    posterior = condition(site)
    got = marginals(posterior, rows_features)
    covariance = np.linalg.inv(np.eye(2 * len(Z)) + np.asarray(site.precision[0]))
    a = np.asarray(rows_features.design)[:, :, 0, :]
    mean = np.einsum("njs,st,t->nj", a, covariance, np.asarray(site.linear[0]))
    np.testing.assert_allclose(got.mean, mean, atol=1e-10)
    wanted = np.einsum("njs,st,nkt->njk", a, covariance, a) + np.asarray(rows_features.slack)
    np.testing.assert_allclose(got.covariance, wanted, atol=1e-10)


def test_both_kinds_of_channel_in_one_batch():
    """A Gaussian and a Poisson channel together: the bound beats either alone, and is a maximum."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, (30, 1))
    channels = [build.channel(build.gaussian(0.3), [[1.0]]), build.channel(Poisson(), [[1.5]])]
    learner = Learner(learning=None, e_tolerance=1e-10, e_rounds=60)
    state = learner.init(build.model(channels), build.inducing(Z))
    f = np.sin(2 * x[:, 0])
    counts = generator.poisson(np.exp(1.5 * f)).astype(float)
    both, _ = build.step(learner, state, pack([(0, x, f), (1, x, counts)]))
    one, _ = build.step(learner, state, pack([(0, x, f)]))
    variance = [build.predict(learner, s, x, 1)[1] for s in (both, one)]
    assert (variance[0] < variance[1]).all()
    mean, _ = build.predict(learner, both, x, 0)
    np.testing.assert_allclose(mean[:, 0], f, atol=0.4)
