"""Trend, seasons and events in a stream: the dense GP with their covariance added."""

import numpy as np
import pytest
from tests._reference import dense

import streamgp as sgp

BEGIN = np.datetime64("2024-02-26")
DAYS = 140
NOISE, LENGTHSCALE, VARIANCE = 0.4, 9.0, 1.7
CENTRE, SCALE = 30.0, 2.5
POINTS = np.linspace(0, DAYS, 23)
HOLIDAY = [(2, 3), (60, 61), (150, 152)]  # [begin, end) in days
SALE = (100.25, 103.5)
AHEAD = np.concatenate([np.linspace(-5, DAYS, 40), DAYS + np.arange(0.0, 60, 3)])


def moments(days):
    """Days after the begin, as times."""
    return BEGIN + np.round(np.asarray(days) * 86400e6).astype("m8[us]")


def mean():
    trend = sgp.Trend(changes=3, over=("2024-02-26", moments(200)), spread=4.0, change_spread=0.7)
    season = sgp.Seasonal("7D", harmonics=2, spread=1.2)
    christmas = [moments(60).astype("M8[D]"), ("2024-07-25", "2024-07-26")]
    events = sgp.Events(
        {"holiday": ["2024-02-28", *christmas], "sale": (moments(SALE[0]), moments(SALE[1]))}
    )
    return sgp.Constant(5.0) + trend + season + events


def basis(t):
    """The same functions times their prior spreads, written out."""
    knots = [50.0, 100.0, 150.0]
    in_holiday = np.any([(b <= t) & (t < e) for b, e in HOLIDAY], axis=0)
    columns = [5.0 * np.ones(len(t)), 4.0 * (t - 100) / 100]
    columns += [0.7 * np.maximum(t - knot, 0) / 100 for knot in knots]
    for k in (1, 2):
        columns += [
            1.2 / k * np.sin(2 * np.pi * k * t / 7),
            1.2 / k * np.cos(2 * np.pi * k * t / 7),
        ]
    columns += [SCALE * in_holiday, SCALE * ((SALE[0] <= t) & (t <= SALE[1]))]
    return np.stack(columns, axis=1)


def data(count=90):
    generator = np.random.default_rng(4)
    t = np.sort(np.round(generator.uniform(0, DAYS, count) * 48) / 48)  # half hours
    t[0] = 0.0  # the day that points count from
    y = 30 + 0.05 * t + 2 * np.sin(2 * np.pi * t / 7) + generator.normal(size=count)
    return t, y + 3 * basis(t)[:, -1]


def oracle(t, y):
    """The predictive moments of the sparse GP with explicit basis functions, from its kernel."""

    def kernel(a, b):
        return dense.rbf(a[:, None], b[:, None], LENGTHSCALE, VARIANCE)

    def explained(a, b):
        inner = dense.with_nugget(kernel(POINTS, POINTS))
        return kernel(a, POINTS) @ np.linalg.solve(inner, kernel(POINTS, b))

    def structure(a, b):
        return basis(a) @ basis(b).T

    found, covariance, _ = dense.exact_gp(
        explained(t, t) + structure(t, t), explained(t, AHEAD) + structure(t, AHEAD),
        kernel(AHEAD, AHEAD) + structure(AHEAD, AHEAD), y - CENTRE, np.full(len(y), NOISE**2),
    )  # fmt: skip
    return found + CENTRE, np.diag(covariance)


def blank(points):
    return sgp.ContinualGP(
        sgp.Gaussian(NOISE),
        latents=sgp.RBF(LENGTHSCALE, VARIANCE),
        learning=None,
        inducing=sgp.Fixed(points),
        scale={"y": (CENTRE, SCALE)},
        mean=mean(),
    )


def assert_exact(model, t, y):
    wanted_mean, wanted_variance = oracle(t, y)
    prediction = model.predict(moments(AHEAD))
    np.testing.assert_allclose(prediction.latent_mean, wanted_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(prediction.latent_variance, wanted_variance, rtol=0, atol=1e-8)


@pytest.mark.parametrize("cuts", [(), (1,), (30, 31, 70), tuple(range(5, 90, 5))], ids=len)
def test_any_chunking_gives_the_dense_gp(cuts):
    t, y = data()
    model = blank(POINTS)
    for part in np.split(np.arange(len(t)), cuts):
        model.update(moments(t[part]), y[part])
    assert_exact(model, t, y)


def test_samples_one_at_a_time_give_the_dense_gp():
    t, y = data()
    model = blank(POINTS)
    model.update_many(moments(t), y)
    assert_exact(model, t, y)


def test_any_order_gives_the_dense_gp():
    """The first day of the first batch is another: phases and windows are where they were."""
    t, y = data()
    later = np.argsort(-t)
    first_day = np.floor(np.min(t[later[:30]]))
    assert first_day > 50
    model = blank(POINTS - first_day)  # points count from the first batch's day
    for part in np.split(later, 3):
        model.update(moments(t[part]), y[part])
    assert_exact(model, t, y)


def test_a_model_that_is_saved_in_between_gives_the_dense_gp():
    t, y = data()
    model = blank(POINTS)
    for part in np.split(np.arange(len(t)), 3):
        model = sgp.from_bytes(model.to_bytes())
        model.update(moments(t[part]), y[part])
    assert_exact(sgp.from_bytes(model.to_bytes()), t, y)
