"""Moving to other inducing points: lossless where it can be, the papers' formulas elsewhere."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from tests._reference import build, dense

from streamgp.inducing import placement
from streamgp.inference.carry import Marginals, Projection
from streamgp.inference.sites import through
from streamgp.inference.learner import Learner
from streamgp.inference.prior import Prior
from streamgp.parameters import unwrap

RULES = pytest.mark.parametrize(
    "rule", [Marginals(), Projection()], ids=["marginals", "projection"]
)
OLD = np.array([-2.7, -1.4, -0.2, 0.9, 2.1, 3.0])
MORE = np.array([-3.1, -2.0, 0.3, 1.5])
TEST = np.linspace(-3, 3, 25)[:, None]


def data(rows=60, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-3, 3, (rows, 1))
    return build.rows((0, x, np.sin(2 * x[:, 0]) + 0.3 * generator.normal(size=rows)))


PROJECTION = Projection()


def learned(rule=PROJECTION, factorised=False):
    """A state of two latent functions with their own points, after one batch."""
    learner = Learner(learning=None, carry=rule, factorised=factorised)
    model = build.model([build.channel(build.gaussian(0.3), [[1.0, 0.5]])], (1.0, 0.6))
    state = learner.init(model, build.points(OLD, OLD + 0.1))
    return learner, learner.step(state, data())[0]


def assert_same(learner, a, b, tolerance=1e-6):
    for got, wanted in zip(learner.predict(a, TEST, 0), learner.predict(b, TEST, 0), strict=True):
        np.testing.assert_allclose(got, wanted, atol=tolerance)


@RULES
@pytest.mark.parametrize("factorised", [False, True])
def test_a_superset_loses_nothing_and_the_way_back_neither(rule, factorised):
    learner, state = learned(rule, factorised)
    shuffled = np.random.default_rng(1).permutation(np.concatenate([OLD, MORE]))
    superset = build.points(shuffled, np.concatenate([MORE[1:], OLD + 0.1]))
    there = learner.move(state, superset)
    assert_same(learner, there, state)
    assert_same(learner, learner.move(there, state.points), state)


@RULES
def test_the_same_points_are_the_identity(rule):
    learner, state = learned(rule)
    again = learner.move(state, state.points)
    np.testing.assert_allclose(again.site.precision[0], state.site.precision[0], atol=1e-6)
    assert_same(learner, again, state, 1e-8)


@RULES
@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize("points", [OLD[:1], OLD[::2], OLD + 0.01, MORE, np.linspace(50, 60, 5)])
def test_any_move_keeps_the_site_positive_and_variances_below_the_prior(rule, factorised, points):
    learner, state = learned(rule, factorised)
    moved = learner.move(state, build.points(points, points))
    assert min(np.linalg.eigvalsh(p).min() for p in moved.site.precision) > -1e-9
    mean, covariance = learner.predict(moved, TEST, 0)
    assert np.isfinite(mean).all()
    assert (covariance > 0).all()
    assert (covariance <= 1.25 + 1e-9).all()


@pytest.mark.parametrize("factorised", [False, True])
def test_points_behind_the_old_ones_leave_every_number_as_it_was(factorised):
    learner, state = learned(factorised=factorised)
    many = np.concatenate([OLD, np.linspace(4, 8, 20)])
    more = build.points(many, np.concatenate([OLD + 0.1, MORE]))
    extended = placement.extended(state, more)
    sizes = [26, 10] if factorised else [36]
    assert [len(a) for a in extended.site.linear] == sizes
    kept = [a[a != 0] for a in extended.site.linear]
    for got, wanted in zip(kept, state.site.linear, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert_same(learner, extended, state, 1e-7)
    assert_same(learner, extended, learner.move(state, more))


def test_points_extend_others_if_they_begin_with_them():
    old, new = build.points(OLD, OLD), build.points(np.concatenate([OLD, MORE]), OLD)
    assert placement.extends(old, new)
    assert not placement.extends(new, old)
    assert not placement.extends(old, build.points(OLD[::-1], OLD))


def test_marginals_are_the_papers_continual_prior():
    learner = Learner(learning=None, carry=Marginals())
    model = build.one_gaussian(0.9, 1.4, 0.3)
    rows = data()
    state, _ = learner.step(learner.init(model, build.points(OLD)), rows)
    new = np.array([-2.0, -1.0, 0.5, 2.5])
    moved = learner.move(state, build.points(new))

    z, zn = OLD[:, None], new[:, None]
    k_oo = dense.with_nugget(dense.rbf(z, z, 0.9, 1.4))
    m, s, _ = dense.sparse_gp(
        k_oo, dense.rbf(z, rows.x, 0.9, 1.4), np.full(60, 1.4), rows.y[:, 0], np.full(60, 0.09)
    )
    k_nn = dense.with_nugget(dense.rbf(zn, zn, 0.9, 1.4))
    mean, covariance = dense.continual_prior(k_nn, dense.rbf(zn, z, 0.9, 1.4), k_oo, m, s)

    chol = np.linalg.cholesky(k_nn)
    half = np.linalg.solve(moved.posterior.chols[0], chol.T)
    np.testing.assert_allclose(chol @ moved.posterior.mean[0], mean, atol=1e-7)
    np.testing.assert_allclose(half.T @ half, covariance, atol=1e-7)


def test_projection_is_the_old_site_read_through_the_regression():
    learner = Learner(learning=None, carry=Projection())
    model = build.one_gaussian(0.9, 1.4, 0.3)
    state, _ = learner.step(learner.init(model, build.points(OLD)), data())
    new = np.array([-2.0, -1.0, 0.5, 2.5])
    moved = learner.move(state, build.points(new))
    z, zn = OLD[:, None], new[:, None]
    k_nn = dense.with_nugget(dense.rbf(zn, zn, 0.9, 1.4))
    regression = dense.rbf(z, zn, 0.9, 1.4) @ np.linalg.inv(k_nn)
    old_chol = np.linalg.cholesky(dense.with_nugget(dense.rbf(z, z, 0.9, 1.4)))
    new_chol = np.linalg.cholesky(k_nn)

    def on_u(site, chol):  # the site on u rather than v
        inverse = np.linalg.inv(chol)
        return inverse.T @ site.linear[0], inverse.T @ site.precision[0] @ inverse

    linear, precision = on_u(state.site, old_chol)
    got_linear, got_precision = on_u(moved.site, new_chol)
    np.testing.assert_allclose(got_linear, regression.T @ linear, rtol=1e-6, atol=1e-6)
    wanted = regression.T @ precision @ regression
    np.testing.assert_allclose(got_precision, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("factorised", [False, True])
def test_rewhitening_changes_the_prior_and_not_the_site_on_u(factorised):
    _, state = learned(factorised=factorised)
    other = build.model([build.channel(build.gaussian(0.3), [[1.0, 0.5]])], (0.7, 1.1), (2.0, 0.5))
    old, new = (Prior.of(unwrap(m), state.points).chols for m in (state.model, other))
    site = through(state.site, list(map(np.linalg.solve, old, new)))
    v_new = np.random.default_rng(0).normal(size=2 * len(OLD))
    u = block_diag(*new) @ v_new
    v_old = np.linalg.solve(block_diag(*old), u)

    def log_site(s, v):
        precision = block_diag(*s.precision)
        return np.concatenate(s.linear) @ v - 0.5 * v @ precision @ v

    np.testing.assert_allclose(log_site(site, v_new), log_site(state.site, v_old), rtol=1e-8)
