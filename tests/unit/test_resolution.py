"""What inducing points leave open, and how many would do."""

import warnings

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp

pytestmark = pytest.mark.filterwarnings("ignore::streamgp.BudgetWarning")

X = np.linspace(0, 40, 400)
Y = np.sin(X) + 0.1 * np.random.default_rng(0).normal(size=400)
ROUGH, SMOOTH = sgp.Matern32(lengthscale=1.0), sgp.RBF(lengthscale=1.0)


def fed(budget, kernel=ROUGH, x=X, **options):
    """A model of one channel, after a stream of four batches; and the last report."""
    strategy = sgp.Adaptive(budget=budget)
    likelihood = sgp.Gaussian(sgp.fixed(0.1))
    model = sgp.ContinualGP(
        likelihood, latents=kernel, inducing=strategy, learning=None, scale=False, **options
    )
    for part in np.array_split(np.arange(len(x)), 4):
        report = model.update(x[part], Y[part])
    return model, report


def several(order=("a", "b", "c"), budget=16):
    """Three families on two latent functions with given weights."""
    channels = {"a": sgp.Gaussian(sgp.fixed(0.1)), "b": sgp.Poisson(), "c": sgp.Bernoulli()}
    weights = {"a": [[1.0, 0.2]], "b": [[0.3, 1.0]], "c": [[-1.0, 1.0]]}
    model = sgp.ContinualGP(
        {name: channels[name] for name in order},
        latents=[ROUGH, SMOOTH],
        inducing=sgp.Adaptive(budget=budget),
        learning=None,
        mixing={name: sgp.fixed(np.array(value)) for name, value in weights.items()},
        scale=False,
    )
    data = {"a": (X, Y), "b": (X, np.round(1 + Y**2)), "c": (X, Y > 0)}
    model.update({name: data[name] for name in order})
    return model


# -- open variance ---------------------------------------------------------------------------------


def test_open_variance_is_what_rows_lack_at_fixed_points():
    z = np.linspace(0, 40, 20)[:, None]
    model = sgp.ContinualGP(
        sgp.Gaussian(0.1), latents=ROUGH, inducing=sgp.Fixed(z), learning=None, scale=False
    )
    first = model.update(X[::2], Y[::2])
    report = model.update(X[1::2], Y[1::2])
    distance = np.sqrt(3) * np.abs(X[:, None] - z[:, 0])
    among = np.sqrt(3) * np.abs(z - z[:, 0])
    k, gram = (1 + distance) * np.exp(-distance), (1 + among) * np.exp(-among)
    left = 1 - np.einsum("nm,mk,nk->n", k, np.linalg.inv(gram), k)
    np.testing.assert_allclose(report.open_variance, [left.mean()], rtol=1e-5)
    np.testing.assert_allclose(first.open_variance, [left[::2].mean()], rtol=1e-5)
    assert report.open_variance == model.open_variance


def test_reports_have_one_number_per_latent_function_and_say_it_when_the_budget_is_spent():
    model, report = fed(12)
    assert report.budget_spent
    assert report.open_variance == model.open_variance
    assert f"budget spent, {report.open_variance[0]:.0%} of the variance left open" in str(report)
    _, roomy = fed(len(X))
    assert not roomy.budget_spent
    assert "left open" not in str(roomy)
    assert len(several().open_variance) == 2


def test_samples_report_it_too():
    model = fed(12)[0]
    report = model.update_many(X[:50] + 40, Y[:50])
    assert report.open_variance == model.open_variance
    assert report.open_variance[0] > 0.1


def test_before_any_data_nothing_is_open():
    model = sgp.ContinualGP({"a": sgp.Gaussian()}, latents=2)
    report = model.update(pd.DataFrame({"x": X[:3], "a": np.nan}), inputs="x")
    assert report.result is sgp.Result.NOTHING_OBSERVED
    assert report.open_variance == (0.0, 0.0)
    assert len(report.open_variance) == len(report.inducing_after)
    assert model.open_variance == ()


def test_the_warning_says_what_is_open_and_what_to_ask():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sgp.BudgetWarning)
        fed(12)
    (said,) = [str(warning.message) for warning in caught]
    assert "% of the variance at past rows open" in said
    assert "model.suggest_budget()" in said


# -- how many would do -----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [6, 12, 48, 200])
@pytest.mark.parametrize("kernel", [ROUGH, SMOOTH])
def test_a_stricter_tolerance_never_asks_for_fewer_points(kernel, budget):
    model, _ = fed(budget, kernel)
    asked = [model.suggest_budget(part) for part in (0.9, 0.5, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-6)]
    assert asked == sorted(asked)
    assert asked[0] >= 1
    assert asked[0] < asked[-1] <= 16 * len(model.inducing_points[0])


@pytest.mark.parametrize("kernel", [ROUGH, SMOOTH])
def test_points_that_suffice_are_not_too_few(kernel):
    model, report = fed(200, kernel)
    assert report.open_variance[0] < 0.01
    assert model.suggest_budget() <= report.inducing_after[0]
    left = report.open_variance[0]
    assert model.suggest_budget(left) == report.inducing_after[0]


@pytest.mark.parametrize("tolerance", [0.01, 0.05])
@pytest.mark.parametrize("kernel", [ROUGH, SMOOTH])
def test_a_starved_model_that_follows_is_starved_no_more(kernel, tolerance):
    starved, before = fed(12, kernel)
    assert before.open_variance[0] > 0.3
    asked = starved.suggest_budget(tolerance)
    _, after = fed(asked, kernel)
    assert after.open_variance[0] < 3 * tolerance
    _, fewer = fed(asked // 3, kernel)
    assert fewer.open_variance[0] > tolerance  # it does not ask for far too many


def test_four_inputs():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (400, 4))
    starved, before = fed(16, sgp.RBF(lengthscale=0.5), x)
    assert before.open_variance[0] > 0.15
    _, after = fed(starved.suggest_budget(0.05), sgp.RBF(lengthscale=0.5), x)
    assert 0.005 < after.open_variance[0] < 0.1


def test_several_latent_functions_and_families_in_any_order():
    asked = several().suggest_budget()
    turned = several(("c", "a", "b")).suggest_budget()
    assert 16 < asked < 16 * 16  # not merely the most that it ever says
    assert asked == turned
    after = several(budget=asked)
    assert max(after.open_variance) < 0.03


@pytest.mark.parametrize("rough", [0, 1])
def test_the_latent_function_that_needs_most_decides(rough):
    kernels = [sgp.RBF(lengthscale=20.0)] * 2
    kernels[rough] = ROUGH
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(sgp.fixed(0.1))},
        latents=kernels,
        inducing=sgp.Adaptive(budget=16),
        learning=None,
        mixing={"a": sgp.fixed(np.ones((1, 2)))},
        scale=False,
    )
    report = model.update({"a": (X, Y)})
    assert report.open_variance[rough] > 0.3
    assert report.open_variance[1 - rough] < 0.01
    assert model.suggest_budget() > 50


def test_one_point_alone():
    model, _ = fed(1)
    assert 1 <= model.suggest_budget(0.99) <= model.suggest_budget() <= 16


def test_asking_changes_nothing_and_is_repeatable():
    model, _ = fed(12)
    before = model.to_bytes()
    assert model.suggest_budget() == model.suggest_budget()
    assert model.to_bytes() == before
    assert sgp.from_bytes(before).suggest_budget() == model.suggest_budget()


@pytest.mark.parametrize("tolerance", [0, 1, -0.1, 2.0, float("nan")])
def test_a_tolerance_that_is_no_part(tolerance):
    with pytest.raises(sgp.ConfigurationError, match="between 0 and 1; got"):
        fed(12)[0].suggest_budget(tolerance)


def test_a_model_without_data():
    with pytest.raises(sgp.DataError, match="Call `update` before `suggest_budget`"):
        sgp.ContinualGP(sgp.Gaussian()).suggest_budget()


def test_hyperparameters_are_not_learned_from_ground_that_is_held_too_coarsely():
    """Else variance that points leave open would be called noise, and lengthscales run away."""
    generator = np.random.default_rng(0)
    x = np.sort(generator.uniform(0, 120, 1200))
    y = np.sin(2 * x) + np.sin(3.3 * x) + 0.2 * generator.normal(size=1200)
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.Matern32(), inducing=sgp.Adaptive(budget=48)
    )
    reports = [model.update(x[part], y[part]) for part in np.split(np.arange(1200), 12)]
    assert reports[-1].open_variance[0] > 0.02
    assert reports[-1].result.name == "KEPT_HYPERPARAMETERS"
    assert model.hyperparameters["channels"]["y"]["noise"] < 0.45  # it would be 0.9


def test_a_full_budget_that_loses_next_to_nothing_is_reported_without_a_warning():
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.RBF(), inducing=sgp.Adaptive(budget=40, tolerance=1e-7)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", sgp.BudgetWarning)
        reports = [model.update(X + t, np.sin(X + t)) for t in range(12)]
    spent = [report for report in reports if report.budget_spent]
    assert spent
    assert max(max(report.open_variance) for report in spent) < 1e-3
