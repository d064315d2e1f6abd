"""Placement: points follow the explored domain, the tolerance and the budget."""

import dataclasses

import numpy as np
import pytest
from tests._reference import build, dense

import streamgp as sgp
from streamgp.inducing import View, place
from streamgp.inducing.adaptive import Ground
from streamgp.inference.sparse.prior import Prior
from streamgp.parameters import unwrap

NONE = np.zeros((0, 1))
X = np.linspace(0, 5, 40)


def view(points, x, update=1, latents=1, precision=1e-3, open_before=0.0):
    """Of observations so noisy that only the tolerance counts."""
    sets, width = (points,) * latents, x.shape[1]
    channel = build.channel(build.gaussian(1.0), np.ones((1, latents)))
    model = unwrap(build.model([channel], [1.0] * latents, width=width))
    precisions = np.full((latents, len(x)), precision)
    return View(sets, x, Prior.of(model, sets), update, precisions, np.full(latents, open_before))


def residual_share(z, x):
    k = dense.rbf(z, z) + 1e-10 * np.eye(len(z))
    k_zx = dense.rbf(z, x)
    return 1 - np.sum(k_zx * np.linalg.solve(k, k_zx), axis=0)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_every_input_is_explained_to_the_tolerance(tolerance):
    x = np.random.default_rng(0).uniform(0, 10, (200, 1))
    (points,) = place(sgp.Adaptive(tolerance), view(NONE, x))
    open_share = [residual_share(points[:count], x).max() for count in range(len(points) + 1)]
    needed = int(np.argmax(np.array(open_share) <= tolerance * (1 + 1e-6)))
    assert 0 < needed < len(points) == needed + (needed + 1) // 2


@pytest.mark.parametrize(("budget", "share"), [(256, None), (48, 6), (16, 0)])
def test_a_first_batch_has_half_as_many_points_again_if_there_is_room(budget, share):
    """At most an eighth of the budget, and none once half of it is in use."""
    x = np.linspace(0, 10, 300)[:, None]
    needed = len(Ground.of(view(NONE, x), 0).pivots(np.full(300, 1e-2), limit=99))
    (points,) = place(sgp.Adaptive(budget=budget), view(NONE, x))
    assert len(points) - needed == ((needed + 1) // 2 if share is None else share)
    beyond = view(points, x + 20.0)
    (further,) = place(sgp.Adaptive(budget=256), beyond)
    assert len(further) - len(points) == needed  # later ground that is new has no more than needed


def test_nothing_is_left_open_that_small_noise_would_show():
    x = np.linspace(0, 3, 50)[:, None]
    (points,) = place(sgp.Adaptive(), view(NONE, x, precision=1e4))
    assert residual_share(points, x).max() <= 1e-5 * (1 + 1e-6)
    assert len(place(sgp.Adaptive(), view(NONE, x))[0]) < len(points)


def test_the_least_explained_input_comes_first():
    x = np.random.default_rng(1).uniform(0, 10, (60, 1))
    start = np.array([[5.0]])
    ground = Ground.of(view(start, x), 0)
    np.testing.assert_allclose(ground.left, residual_share(start, x), atol=1e-9)
    chosen = ground.pivots(np.full(60, 1e-3), limit=40)
    assert residual_share(np.concatenate([start, x[chosen]]), x).max() <= 1e-3
    assert len(ground.pivots(np.full(60, 1e-3), limit=3)) == 3
    have = start
    for index in chosen[:5]:
        assert residual_share(have, x)[index] >= residual_share(have, x).max() - 1e-9
        have = np.concatenate([have, x[[index]]])


def test_on_known_ground_of_several_inputs_room_is_used_up_little_by_little():
    generator = np.random.default_rng(0)
    strategy = sgp.Adaptive(0.1, budget=128)
    (first,) = place(strategy, view(np.zeros((0, 2)), generator.uniform(0, 4, (300, 2))))
    new = generator.uniform(0, 4, (300, 2))
    seen = view(first, new, open_before=0.01)
    (finer,) = place(strategy, seen)
    coarse = Ground.of(seen, 0).pivots(np.full(300, 0.1), limit=99)
    assert len(finer) == len(first) + len(coarse) + 8
    (same,) = place(strategy, view(first, new, open_before=1e-6))  # as if past rows were explained
    assert len(same) == len(first) + len(coarse)
    beyond = view(first, new + 4.0, open_before=0.01)
    (further,) = place(strategy, beyond)
    needed = Ground.of(beyond, 0).pivots(np.full(300, 0.1), limit=99)
    assert len(further) == len(first) + len(needed)


def test_points_of_one_input_are_spare_only_when_half_of_the_budget_is_in_use():
    """Of each latent function by itself."""
    x = np.linspace(0, 5, 30)[:, None]
    strategy, few, many = sgp.Adaptive(budget=32), x[::3], x[:20]
    seen = view(few, x, latents=2)
    channel = build.channel(build.gaussian(1.0), np.ones((1, 2)))
    model = unwrap(build.model([channel], [1.0, 1.0]))
    sets = (few, many)
    seen = seen._replace(points=sets, prior=Prior.of(model, sets))
    spare = strategy.spare(seen)
    assert spare[0] < 1e-7
    assert spare[1] == pytest.approx(0.5e-2)


def test_the_last_room_is_left_for_new_ground():
    generator = np.random.default_rng(0)
    points = generator.uniform(0, 4, (28, 2))
    new = generator.uniform(0, 4, (50, 2))
    (finer,) = place(sgp.Adaptive(0.5, budget=32), view(points, new, open_before=0.5))
    assert len(finer) == 28


def test_old_ground_adds_nothing_and_old_points_stay_in_place():
    generator = np.random.default_rng(0)
    strategy = sgp.Adaptive()
    (first,) = place(strategy, view(NONE, np.linspace(0, 10, 300)[:, None]))
    (again,) = place(strategy, view(first, generator.uniform(0, 10, (300, 1))))
    np.testing.assert_array_equal(again[: len(first)], first)
    assert len(again) <= len(first) + 1
    (further,) = place(strategy, view(first, generator.uniform(10, 20, (300, 1))))
    np.testing.assert_array_equal(further[: len(first)], first)
    assert len(further) > 1.4 * len(first)


def test_the_budget_is_hard_and_spread_over_old_and_new_ground():
    model = sgp.ContinualGP(
        sgp.Gaussian(), inducing=sgp.Adaptive(budget=12), latents=[sgp.RBF(1.0)], learning=None
    )
    for begin in (0.0, 10.0, 20.0, 30.0):
        x = np.linspace(begin, begin + 10, 60)
        model.update(x, np.sin(x))
        assert len(model.inducing_points[0]) <= 12
    assert len(model.inducing_points[0]) == 12
    assert (model.inducing_points[0] < 20).any()
    assert (model.inducing_points[0] > 30).any()


def test_duplicates_never_become_two_points():
    x = np.repeat([[1.0], [2.0]], 50, axis=0)
    (points,) = place(sgp.Adaptive(), view(NONE, x))
    assert len(points) == 2


def test_growing_follows_its_rule_over_the_explored_domain():
    strategy = sgp.Growing(lambda t: 3 * t)
    (points,) = place(strategy, view(np.array([[-1.0]]), np.array([[4.0]]), update=2))
    np.testing.assert_allclose(points[:, 0], np.linspace(-1, 4, 6))
    x = np.random.default_rng(0).uniform(size=(20, 2))
    (grid,) = place(strategy, view(np.zeros((0, 2)), x))
    assert grid.shape == (9, 2)
    scattered = sgp.Growing(lambda t: 5, layout="random")
    (one,), (two,) = (place(scattered, view(NONE, X10, update=t)) for t in (1, 2))
    assert one.shape == (5, 1)
    assert not np.array_equal(one, two)


X10 = np.linspace(0, 10, 50)[:, None]


def test_fixed_points_are_shared_or_one_set_a_latent():
    shared = place(sgp.Fixed([0.0, 1.0, 1.0]), view(NONE, X10, latents=2))
    assert [len(p) for p in shared] == [2, 2]
    own = place(
        sgp.Fixed([np.zeros((1, 1)), np.ones((3, 1)) * [[1], [2], [3]]]), view(NONE, X10, latents=2)
    )
    assert [len(p) for p in own] == [1, 3]


def test_a_function_of_the_users_own():
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=lambda v: v.x[::10], learning=None)
    model.update(X10, np.sin(X10[:, 0]))
    np.testing.assert_array_equal(model.inducing_points[0], X10[::10])


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="tolerance"):
        sgp.Adaptive(tolerance=0.0)


def test_centres_keep_to_old_ground_as_well_as_new():
    strategy = sgp.KMeans(10)
    x = np.random.default_rng(0).uniform(0, 10, (200, 1))
    (first,) = place(strategy, view(NONE, x))
    assert len(first) == 10
    assert np.abs(x - first.T).min(axis=1).max() < 1.5
    (both,) = place(strategy, view(first, x + 10, update=2))
    assert len(both) == 10
    assert (both < 10).sum() >= 3
    assert (both > 10).sum() >= 3
    (few,) = place(strategy, view(NONE, np.ones((5, 1))))
    np.testing.assert_array_equal(few, [[1.0]])


@pytest.mark.parametrize(
    ("likelihood", "observe"),
    [(sgp.Gaussian(noise=0.1), np.sin), (sgp.Bernoulli(), lambda x: np.sin(x) > 0)],
)
def test_refined_points_raise_the_bound_and_old_points_stay(likelihood, observe):
    def two_more(view):
        return np.concatenate([view.points[0], view.x[:2]])

    bounds, points = {}, {}
    for name, strategy in {"plain": two_more, "refined": sgp.Refined(two_more)}.items():
        model = sgp.ContinualGP(
            likelihood, latents=[sgp.RBF(1.0, 1.0)], inducing=strategy, learning=None
        )
        first = model.update(X, observe(X).astype(float))
        points[name] = model.inducing_points[0]
        second = model.update(X + 6, observe(X + 6).astype(float))
        bounds[name] = first.bound, second.bound
        np.testing.assert_array_equal(model.inducing_points[0][:2], points[name])
    assert bounds["refined"][0] > bounds["plain"][0] + 1.0
    assert not np.allclose(points["plain"], points["refined"])
    assert np.isfinite(bounds["refined"][1])


def test_refinement_takes_what_its_strategy_can_do():
    refined = sgp.Refined(sgp.Adaptive(budget=9))
    assert refined.budget == 9
    assert sgp.Refined(lambda view: view.x).budget is None
    with pytest.raises(sgp.ConfigurationError, match="evaluation"):
        sgp.Refined(sgp.Adaptive(), evaluations=0)


def test_one_sample_at_the_centre_of_a_line():
    """Its prior variance is zero there, and a point is wanted all the same."""
    model = sgp.ContinualGP(sgp.Gaussian(), latents=[sgp.Linear()], learning=None)
    model.update([3.0], [1.0])
    model.update([4.0, 5.0], [2.0, 3.0])
    assert np.isfinite(model.predict([6.0]).mean).all()


@dataclasses.dataclass(frozen=True)
class EveryInput(sgp.AbstractStrategy):
    """Every input becomes a point; the budget is the library's to keep."""

    budget: int = 12

    def __call__(self, view):
        return [np.concatenate([points, view.x]) for points in view.points]


def test_a_strategy_of_the_users_with_a_budget_that_binds():
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=EveryInput())
    for t in range(4):
        report = model.update(X[:10] + 6 * t, np.sin(X[:10] + 6 * t))
        assert max(report.inducing_after) <= 12
    assert report.budget_spent
    streamed = model.update_many(X[:10] + 24, np.sin(X[:10] + 24))
    assert max(streamed.inducing_after) <= 12
    with pytest.raises(sgp.FileError, match="register"):
        model.to_bytes()


def test_a_strategy_may_choose_what_it_keeps():
    class Newest(EveryInput):
        def kept(self, state, budget):
            return [np.arange(len(z)) >= len(z) - budget for z in state.points]

    model = sgp.ContinualGP(sgp.Gaussian(), inducing=Newest(), learning=None)
    for t in range(3):
        model.update(X[:10] + 6 * t, np.sin(X[:10] + 6 * t))
    assert model.inducing_points[0].min() > 6


def test_what_is_no_strategy_is_refused():
    with pytest.raises(sgp.ConfigurationError, match="AbstractStrategy"):
        sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive)


def test_a_point_without_prior_variance_counts_for_nothing_where_there_is_no_room():
    """The line's factor is zero at 0, which is the first point; the other points fill the budget.

    Warnings of NumPy would be errors here.
    """
    model = sgp.ContinualGP(
        sgp.Gaussian(),
        latents=(sgp.Linear() + 1.0) * sgp.Linear(),
        engine="sparse",
        inducing=sgp.Adaptive(budget=3),
        learning=None,
    )
    for place_ in (0.0, -1.0, 2.0, -3.0):
        model.update(np.full(5, place_), np.full(5, np.sin(place_)))
    assert len(model.inducing_points[0]) <= 3
    assert np.isfinite(model.predict([1.0]).mean).all()
