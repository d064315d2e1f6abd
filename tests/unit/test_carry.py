"""Moving to other inducing points: lossless where it can be, the papers' formulas elsewhere."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from tests._reference import build, dense

import streamgp as sgp
from streamgp.inducing import placement
from streamgp.inference.posterior import condition
from streamgp.inference.sites import through
from streamgp.inference.sparse.absorbed import Reading
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Prior
from streamgp.inference.vem import VEM
from streamgp.model.means import NONE, Constant
from streamgp.parameters import Positive, free_size, free_vector, replaced, unwrap, with_free

MEANS = pytest.mark.parametrize("mean", [NONE, Constant()], ids=["no mean", "level"])
SPREAD = 2.0
OLD = np.array([-2.7, -1.4, -0.2, 0.9, 2.1, 3.0])
MORE = np.array([-3.1, -2.0, 0.3, 1.5])
TEST = np.linspace(-3, 3, 25)[:, None]


def data(rows=60, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-3, 3, (rows, 1))
    return build.rows((0, x, np.sin(2 * x[:, 0]) + 0.3 * generator.normal(size=rows)))


LEVEL = Constant()


def learned(mean=LEVEL):
    """A state of two latent functions with their own points, after one batch."""
    learner = Learner(learning=None)
    channel = build.channel(build.gaussian(0.3), [[1.0, 0.5]], mean=mean, spread=SPREAD)
    state = learner.init(build.model([channel], (1.0, 0.6)), build.points(OLD, OLD + 0.1))
    return learner, learner.step(state, data())[0]


def assert_same(learner, a, b, tolerance=1e-6):
    for got, wanted in zip(learner.predict(a, TEST, 0), learner.predict(b, TEST, 0), strict=True):
        np.testing.assert_allclose(got, wanted, atol=tolerance)


@MEANS
def test_a_superset_loses_nothing_and_the_way_back_neither(mean):
    learner, state = learned(mean)
    shuffled = np.random.default_rng(1).permutation(np.concatenate([OLD, MORE]))
    superset = build.points(shuffled, np.concatenate([MORE[1:], OLD + 0.1]))
    there = learner.move(state, superset)
    assert_same(learner, there, state)
    assert_same(learner, learner.move(there, state.points), state)


def test_the_same_points_are_the_identity():
    learner, state = learned()
    again = learner.move(state, state.points)
    np.testing.assert_allclose(again.site.precision, state.site.precision, atol=1e-6)
    assert_same(learner, again, state, 1e-8)


@MEANS
@pytest.mark.parametrize("points", [OLD[:1], OLD[::2], OLD + 0.01, MORE, np.linspace(50, 60, 5)])
def test_any_move_keeps_the_site_positive_and_variances_below_the_prior(mean, points):
    learner, state = learned(mean)
    moved = learner.move(state, build.points(points, points))
    assert np.linalg.eigvalsh(moved.site.precision).min() > -1e-9
    centre, covariance = learner.predict(moved, TEST, 0)
    assert np.isfinite(centre).all()
    assert (covariance > 0).all()
    assert (covariance <= 1.25 + mean.size * SPREAD**2 + 1e-9).all()


def test_points_behind_the_old_ones_leave_every_number_as_it_was():
    learner, state = learned()
    many = np.concatenate([OLD, np.linspace(4, 8, 20)])
    more = build.points(many, np.concatenate([OLD + 0.1, MORE]))
    extended = placement.extended(state, more)
    assert len(extended.site.linear) == 37
    assert extended.sizes == (26, 10)
    for got, wanted in zip(extended.absorbed.arrays(), state.absorbed.arrays(), strict=True):
        np.testing.assert_array_equal(got[got != 0], wanted[wanted != 0])
    assert_same(learner, extended, state, 1e-7)
    assert_same(learner, extended, learner.move(state, more))


def test_points_extend_others_if_they_begin_with_them():
    old, new = build.points(OLD, OLD), build.points(np.concatenate([OLD, MORE]), OLD)
    assert placement.extends(old, new)
    assert not placement.extends(new, old)
    assert not placement.extends(old, build.points(OLD[::-1], OLD))


def test_projection_is_the_old_site_read_through_the_regression():
    learner = Learner(learning=None)
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
        return inverse.T @ site.linear, inverse.T @ site.precision @ inverse

    linear, precision = on_u(state.site, old_chol)
    got_linear, got_precision = on_u(moved.site, new_chol)
    np.testing.assert_allclose(got_linear, regression.T @ linear, rtol=1e-6, atol=1e-6)
    wanted = regression.T @ precision @ regression
    np.testing.assert_allclose(got_precision, wanted, rtol=1e-6, atol=1e-6)


def test_rewhitening_changes_the_prior_and_not_the_site_on_u():
    _, state = learned()
    other = build.model([build.channel(build.gaussian(0.3), [[1.0, 0.5]])], (0.7, 1.1), (2.0, 0.5))
    old, new = (Prior.of(unwrap(m), state.points).chols for m in (state.model, other))
    site = through(state.site, list(map(np.linalg.solve, old, new)))
    v_new = np.random.default_rng(0).normal(size=2 * len(OLD) + 1)  # the level's last
    u = block_diag(*new, 1.0) @ v_new
    v_old = np.linalg.solve(block_diag(*old, 1.0), u)

    def log_site(s, v):
        precision = s.precision
        return s.linear @ v - 0.5 * v @ precision @ v

    np.testing.assert_allclose(log_site(site, v_new), log_site(state.site, v_old), rtol=1e-8)


# -- several channels after points were dropped ----------------------------------------------------

NEW = np.array([-2.2, -0.8, 0.6, 2.4])


def several(learner, kernels=False, classes=True):
    """Two normal channels and one of classes, after one batch; all channels are trained.

    Without `classes`, the weights of the classes are fixed.
    """
    generator = np.random.default_rng(3)
    likelihoods = build.gaussian(0.3, True), build.gaussian(0.5, True), sgp.Categorical(3)
    channels = []
    for likelihood in likelihoods:
        weights = generator.normal(size=(likelihood.latents, 2))
        trained = classes or likelihood.conjugate
        own = build.channel(likelihood, weights, 0.1, trainable=trained, mean=LEVEL, spread=SPREAD)
        channels.append(replaced(own, scale=Positive(np.ones(likelihood.latents))))
    model = build.model(channels, (1.0, 0.6), trainable=kernels)
    state = learner.init(model, build.points(OLD, OLD + 0.1))
    return learner.step(state, draw_several(0), learn=False)[0]


def draw_several(seed, channels=3):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-3, 3, (3, 20))
    y = np.sin(2 * x) + 0.3 * generator.normal(size=(3, 20))
    y[2] = np.digitize(y[2], [-0.4, 0.4])
    return build.rows(*[(d, x[d], y[d]) for d in range(channels)])


def elsewhere(model):
    """The model with other weights, scales and noises."""
    vector, kernels = free_vector(model), free_size(model.kernels)
    step = 0.3 * np.random.default_rng(4).normal(size=vector.size)
    step[:kernels] = 0.0
    return with_free(model, vector + step)


def read(model, state):
    """What the past says under a plain model, v integrated out."""
    reading = Reading.of(model, state.plain)
    said = condition(state.absorbed.site(reading, state.sizes)).log_evidence
    return state.absorbed.beside(reading) + said


def test_projected_channels_are_read_under_weights_that_are_learned_later():
    """As if the points had been dropped after the weights were learned."""
    learner = Learner(VEM())
    state, points = several(learner), build.points(NEW, NEW)
    before = learner.move(state, points)
    reading = Reading.of(unwrap(elsewhere(state.model)), state.plain)
    found = state.absorbed.read(reading, state.sizes)
    after = learner.move(state.replace(absorbed=found), points).absorbed
    late = before.absorbed
    known = reading._replace(ratio=np.ones_like(reading.ratio))
    assert late.beside(reading) == pytest.approx(after.beside(known))
    for part in ("linear", "precision"):
        got, wanted = (
            getattr(said.site(of, before.sizes), part)
            for said, of in ((late, reading), (after, known))
        )
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)
        assert np.max(np.abs(got - getattr(before.site, part))) > 0.1


def test_what_is_projected_is_a_bound_on_the_evidence():
    """Of normal channels: the data's bound with q(u_old) = p(u_old | u_new), by dense formulas."""
    learner = Learner(VEM(evaluations=1))
    blank = several(learner)
    channels = blank.model.channels[:2]
    start = learner.init(replaced(blank.model, channels=channels), blank.points)
    rows = draw_several(0, channels=2)
    state, _ = learner.step(start, rows)
    moved = learner.move(state, build.points(NEW, NEW))
    for model in (state.plain, unwrap(elsewhere(state.model))):
        bounds = [
            read(model, s) - 0.5 * np.sum(s.absorbed.count) * np.log(2 * np.pi)
            for s in (state, moved)
        ]
        whole, projected, exact = dense_bounds(model, rows)
        assert bounds[0] == pytest.approx(whole, rel=1e-8)
        assert bounds[1] == pytest.approx(projected, rel=1e-6)
        assert projected < whole < exact


def dense_bounds(model, rows):
    """Bounds with the old points, with the new through the old, and the log evidence."""
    loadings = np.concatenate([channel.loadings for channel in model.channels])[rows.channel]
    noise = np.array([float(c.likelihood.noise) for c in model.channels])[rows.channel] ** 2
    y, level = rows.y[:, 0] - 0.1, SPREAD**2 * (rows.channel[:, None] == rows.channel)
    covariances = [level.astype(float) for _ in range(3)]
    left = np.zeros((2, len(y)))
    for q, lengthscale in enumerate((1.0, 0.6)):
        old, new = OLD[:, None] + 0.1 * q, NEW[:, None]
        k_oo, k_nn = (dense.with_nugget(dense.rbf(z, z, lengthscale)) for z in (old, new))
        gain = np.linalg.solve(k_oo, dense.rbf(old, rows.x, lengthscale)).T
        onto = gain @ dense.rbf(old, new, lengthscale)
        mixed = np.outer(loadings[:, q], loadings[:, q])
        known = gain @ k_oo @ gain.T, onto @ np.linalg.solve(k_nn, onto.T)
        covariances[0] += mixed * known[0]
        covariances[1] += mixed * known[1]
        covariances[2] += mixed * dense.rbf(rows.x, rows.x, lengthscale)
        for k in range(2):
            left[k] += loadings[:, q] ** 2 * (1 - np.diag(known[k]))
    evidences = [dense.log_normal(y, 0 * y, c + np.diag(noise)) for c in covariances]
    slack = [0.5 * np.sum(own / noise) for own in left]
    return evidences[0] - slack[0], evidences[1] - slack[1], evidences[2]


def test_learning_goes_on_where_points_were_dropped():
    """What is kept implies the site that the step came to, with other kernels too."""
    learner = Learner(VEM(evaluations=4))
    state = several(learner, kernels=True, classes=False)
    state = learner.move(state, build.points(NEW, NEW))
    learned = build.learned(learner, state, draw_several(1))
    assert learned.trial.maps is not None
    after, info = learner.step(state, draw_several(1))
    assert info.finite
    wanted = learned.trial.setting.site(learned.fit.rows)
    for part in ("linear", "precision"):
        got, own = getattr(after.site, part), getattr(wanted, part)
        np.testing.assert_allclose(got, own, rtol=0, atol=1e-8 * (1 + np.max(np.abs(own))))


def test_a_faded_state_fades_as_a_whole():
    learner = Learner(VEM())
    state = learner.move(several(learner), build.points(NEW, NEW))
    state, _ = learner.step(state, draw_several(1), learn=False)
    faded = learner.tempered(state, 0.25)
    for part in ("linear", "precision"):
        got, wanted = (getattr(s.site, part) for s in (faded, state))
        np.testing.assert_allclose(got, 0.25 * wanted, rtol=1e-9, atol=1e-9)
    assert faded.count == pytest.approx(0.25 * state.count)
    beside = [float(s.absorbed.energy.sum() + s.absorbed.slack.sum()) for s in (faded, state)]
    assert beside[0] == pytest.approx(0.25 * beside[1])


def test_points_come_back_behind_those_that_were_kept():
    learner = Learner(VEM())
    state = learner.move(several(learner), build.points(NEW, NEW))
    wide = placement.extended(state, build.points(np.append(NEW, [5.0, 6.0]), np.append(NEW, 4.0)))
    for d in range(3):
        for got, wanted in zip(
            learner.predict(wide, TEST, d), learner.predict(state, TEST, d), strict=True
        ):
            np.testing.assert_allclose(got, wanted, atol=1e-7)


def test_a_channel_may_come_after_points_were_dropped():
    """It changes nothing that is known, though it has mean functions of its own."""
    x = np.linspace(0, 6, 40)
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, latents=2,
        inducing=sgp.Adaptive(budget=5), mean={"a": None},
    )  # fmt: skip
    for shift in (0.0, 5.0):
        model.update({"a": (x + shift, np.sin(3 * x)), "b": (x + shift, 4 + np.cos(2 * x))})
    old = {name: model.predict(x, name) for name in "ab"}
    model.add_channel("late", sgp.Poisson())
    for name, before in old.items():
        np.testing.assert_allclose(model.predict(x, name).mean, before.mean, atol=1e-8)
        np.testing.assert_allclose(model.predict(x, name).variance, before.variance, atol=1e-8)
    assert np.isfinite(model.update({"late": (x, np.floor(2 + np.sin(x)))}).bound)
