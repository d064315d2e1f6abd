"""Moving to other inducing points: lossless where it can be, the papers' formulas elsewhere."""

import numpy as np
import paramax
import pytest
from tests._reference import build, dense

from streamgp.data import pack
from streamgp.inducing import slots
from streamgp.inference.carry import Marginals, Projection, rewhitened
from streamgp.inference.conditioning import condition, factorise
from streamgp.inference.learner import Learner

RULES = pytest.mark.parametrize(
    "rule", [Marginals(), Projection()], ids=["marginals", "projection"]
)
OLD = np.array([-2.7, -1.4, -0.2, 0.9, 2.1, 3.0])
MORE = np.array([-3.1, -2.0, 0.3, 1.5])
TEST = np.linspace(-3, 3, 25)[:, None]


def data(rows=60, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-3, 3, (rows, 1))
    return pack([(0, x, np.sin(2 * x[:, 0]) + 0.3 * generator.normal(size=rows))])


PROJECTION = Projection()


def learned(rule=PROJECTION, factorised=False):
    """A state of two latents with their own points, after one batch."""
    learner = Learner(learning=None, carry=rule, factorised=factorised)
    model = build.model([build.channel(build.gaussian(0.3), [[1.0, 0.5]])], (1.0, 0.6))
    state = learner.init(model, build.inducing(OLD, OLD + 0.1, slots=16))
    return learner, build.step(learner, state, data())[0]


def moments(learner, state):
    return [np.asarray(part) for part in build.predict(learner, state, TEST)]


def assert_same(learner, a, b, tolerance=1e-6):
    for got, wanted in zip(moments(learner, a), moments(learner, b), strict=True):
        np.testing.assert_allclose(got, wanted, atol=tolerance)


@RULES
@pytest.mark.parametrize("factorised", [False, True])
def test_a_superset_loses_nothing_and_the_way_back_neither(rule, factorised):
    learner, state = learned(rule, factorised)
    shuffled = np.random.default_rng(1).permutation(np.concatenate([OLD, MORE]))
    superset = build.inducing(shuffled, np.concatenate([MORE, OLD + 0.1]), slots=16)
    there = build.move(learner, state, superset)
    assert_same(learner, there, state)
    assert_same(learner, build.move(learner, there, state.inducing), state)


@RULES
def test_the_same_points_are_the_identity(rule):
    learner, state = learned(rule)
    again = build.move(learner, state, state.inducing)
    np.testing.assert_allclose(again.site.precision, state.site.precision, atol=1e-6)
    assert_same(learner, again, state, 1e-8)


@RULES
@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize("points", [OLD[:1], OLD[::2], OLD + 0.01, MORE, np.linspace(50, 60, 5)])
def test_any_move_keeps_the_site_positive_and_variances_below_the_prior(rule, factorised, points):
    learner, state = learned(rule, factorised)
    moved = build.move(learner, state, build.inducing(points, points, slots=16))
    assert np.linalg.eigvalsh(moved.site.precision).min() > -1e-9
    mean, covariance = moments(learner, moved)
    assert np.isfinite(mean).all()
    assert (covariance > 0).all()
    assert (covariance <= 1.25 + 1e-9).all()


def test_points_in_empty_slots_leave_every_number_as_it_was():
    learner, state = learned()
    sets = [np.concatenate([points, MORE]) for points in (OLD, OLD + 0.1)]
    more = build.inducing(*sets, slots=16)
    assert slots.extends([OLD, OLD], [np.concatenate([OLD, MORE]), OLD])
    extended = slots.extended(state, more)
    np.testing.assert_array_equal(extended.site.precision, state.site.precision)
    assert_same(learner, extended, state, 1e-9)
    assert_same(learner, extended, build.move(learner, state, more))


@pytest.mark.parametrize("factorised", [False, True])
def test_points_beyond_the_slots_widen_the_site(factorised):
    learner, state = learned(factorised=factorised)
    many = np.concatenate([OLD, np.linspace(4, 8, 20)])
    also = np.concatenate([OLD + 0.1, MORE])
    extended = slots.extended(state, slots.inducing([many[:, None], also[:, None]]))
    assert extended.inducing.mask.shape == (2, 32)
    assert_same(learner, extended, state, 1e-7)


def with_nugget(k):
    return k + dense.NUGGET * np.diag(np.diag(k))


def test_marginals_are_the_papers_continual_prior():
    learner = Learner(learning=None, carry=Marginals())
    model = build.one_gaussian(0.9, 1.4, 0.3)
    batch = data()
    state, _ = build.step(learner, learner.init(model, build.inducing(OLD)), batch)
    new = np.array([-2.0, -1.0, 0.5, 2.5])
    moved = build.move(learner, state, build.inducing(new))

    z, zn = OLD[:, None], new[:, None]
    x, y = np.asarray(batch.x)[:60], np.asarray(batch.y)[:60]
    k_oo = with_nugget(dense.rbf(z, z, 0.9, 1.4))
    m, s, _ = dense.sparse_gp(
        k_oo, dense.rbf(z, x, 0.9, 1.4), np.full(60, 1.4), y, np.full(60, 0.09)
    )
    k_nn = with_nugget(dense.rbf(zn, zn, 0.9, 1.4))
    mean, covariance = dense.continual_prior(k_nn, dense.rbf(zn, z, 0.9, 1.4), k_oo, m, s)

    chol = np.asarray(factorise(paramax.unwrap(moved.model), moved.inducing))[0]
    posterior = condition(moved.site)
    half = np.linalg.solve(np.asarray(posterior.chol[0]), chol.T)
    np.testing.assert_allclose(chol @ posterior.mean[0], mean, atol=1e-7)
    np.testing.assert_allclose(half.T @ half, covariance, atol=1e-7)


def test_projection_is_the_old_site_read_through_the_regression():
    learner = Learner(learning=None, carry=Projection())
    model = build.one_gaussian(0.9, 1.4, 0.3)
    state, _ = build.step(learner, learner.init(model, build.inducing(OLD)), data())
    new = np.array([-2.0, -1.0, 0.5, 2.5])
    moved = build.move(learner, state, build.inducing(new))
    plain = paramax.unwrap(model)
    old_chol, new_chol = (np.asarray(factorise(plain, s.inducing))[0] for s in (state, moved))
    z, zn = OLD[:, None], new[:, None]
    regression = dense.rbf(z, zn, 0.9, 1.4) @ np.linalg.inv(
        with_nugget(dense.rbf(zn, zn, 0.9, 1.4))
    )

    def on_u(site, chol):  # the site's precision on u rather than v
        inverse = np.linalg.inv(chol)
        return inverse.T @ np.asarray(site.precision[0]) @ inverse

    wanted = regression.T @ on_u(state.site, old_chol) @ regression
    np.testing.assert_allclose(on_u(moved.site, new_chol), wanted, rtol=1e-6, atol=1e-6)


def test_rewhitening_changes_the_prior_and_not_the_site_on_u():
    _, state = learned()
    other = build.model([build.channel(build.gaussian(0.3), [[1.0, 0.5]])], (0.7, 1.1), (2.0, 0.5))
    old, new = (factorise(paramax.unwrap(m), state.inducing) for m in (state.model, other))
    site = rewhitened(state.site, old, new)
    v_new = np.random.default_rng(0).normal(size=(2, 16))
    u = np.einsum("qmn,qn->qm", new, v_new)
    v_old = np.stack([np.linalg.solve(old[q], u[q]) for q in range(2)])

    def log_site(s, v):
        flat = v.ravel()
        return s.linear[0] @ flat - 0.5 * flat @ s.precision[0] @ flat

    np.testing.assert_allclose(log_site(site, v_new), log_site(state.site, v_old), rtol=1e-8)
