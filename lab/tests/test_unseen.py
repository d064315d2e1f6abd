"""Data that nothing was tuned to: the marks, and streams of the right kind."""

import numpy as np
import pytest
from scipy import integrate, stats

from streamgp_lab.races.unseen import sensors, tables
from streamgp_lab.races.unseen.marks import averaged, marks


def test_marks_of_normal_predictions():
    y, mean, variance = np.array([0.3, 2.0]), np.array([0.0, 1.0]), np.array([1.0, 4.0])
    found = marks(y, mean, variance)
    law = [stats.norm(m, np.sqrt(v)) for m, v in zip(mean, variance, strict=True)]
    nlpd = [-each.logpdf(value) for each, value in zip(law, y, strict=True)]
    crps = [
        integrate.quad(lambda t, each=each: each.cdf(t) ** 2, -40, value)[0]
        + integrate.quad(lambda t, each=each: each.sf(t) ** 2, value, 40)[0]
        for each, value in zip(law, y, strict=True)
    ]
    assert found.nlpd == pytest.approx(np.mean(nlpd))
    assert found.crps == pytest.approx(np.mean(crps), rel=1e-6)
    assert found.rmse == pytest.approx(np.sqrt((0.3**2 + 1.0) / 2))


def test_windows_show_where_intervals_fail():
    y = np.repeat([0.0, 9.0], [80, 20])
    found = marks(y, np.zeros(100), np.ones(100))
    assert (found.coverage, found.lowest, found.highest) == (0.8, 0.0, 1.0)
    assert averaged([found, found._replace(lowest=0.5)]).lowest == 0.25


def test_outages_are_not_seen():
    seen, silent = sensors.readings(1.0, 0)
    for station in sensors.STATIONS:
        assert len(silent[station][0]) > 20
        assert not set(seen[station][0]) & set(silent[station][0])
        assert np.isfinite(seen[station][1]).all()
        assert np.isfinite(silent[station][1]).all()


def test_the_last_value_is_a_walk():
    x, y = np.arange(8) / 8, np.array([0.0, 1, 0, 1, 0, 1, 0, 1])
    mean, variance = sensors._last(x, y, np.array([1.0, 1.125]))
    assert mean.tolist() == [1.0, 1.0]
    assert variance.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", tables.TABLES)
def test_tables_are_numbers(name):
    x, y = tables.TABLES[name]()
    assert len(x) == len(y) > 1000
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()


def test_linear_regression_knows_a_line():
    x = np.random.default_rng(0).normal(size=(50, 2))
    mean, variance = tables._linear(x, 1 + x @ [2.0, -1.0], x[:3])
    np.testing.assert_allclose(mean, 1 + x[:3] @ [2.0, -1.0])
    np.testing.assert_allclose(variance, 0, atol=1e-20)
