"""A filter that rows are appended to, and what the core refuses."""

import numpy as np
import pytest

from streamgp import _core
from streamgp.inference.over_time.law import distinct_gaps
from tests.core.worlds import World, scattered


@pytest.fixture(params=["default", "season", "evolving"])
def world(request):
    return World.of(request.param, 2)


def arguments(world, rows):
    """The law and the columns of rows, as `States` hands them over."""
    law, columns, _ = world.core()._arguments(rows)
    return law, columns


def some(columns, which):
    """Some of the rows."""
    count = len(columns[0])
    return tuple(
        column[which] if column is not None and len(column) == count else column
        for column in columns
    )


@pytest.mark.parametrize("ends", [(80,), (1, 2, 3, 80), (40, 41, 80), tuple(range(1, 81))])
def test_appending_adds_up_to_the_evidence(world, ends):
    rows = scattered(80)
    law, columns = arguments(world, rows)
    stream, begin, total = _core.Stream(law), 0, 0.0
    for end in ends:
        total += stream.append(*some(columns, slice(begin, end)))[2].sum()
        begin = end
    np.testing.assert_allclose(total, world.core().evidence(rows).value, rtol=1e-10)


def test_each_row_is_foreseen_as_by_those_before_it(world):
    rows = scattered(30, asking=0.2)
    law, columns = arguments(world, rows)
    mean, variance, density = _core.Stream(law).append(*columns)
    for number in (0, 1, 7, 29):
        value = np.where(np.arange(30) < number, rows.value, np.nan)
        _, expected, spread = world.core().smoothed(rows._replace(value=value))
        np.testing.assert_allclose(mean[number], expected[number], atol=1e-9)
        np.testing.assert_allclose(variance[number], spread[number], rtol=1e-8)
    assert np.array_equal(np.isnan(density), np.isnan(rows.value))


def test_a_state_goes_on_where_it_was(world):
    law, columns = arguments(world, scattered(60))
    first, rest = slice(0, 25), slice(25, 60)
    stream = _core.Stream(law)
    stream.append(*some(columns, first))
    other = _core.Stream(law)
    other.restore(stream.state())
    ahead = other.ahead(*some(columns, rest))
    assert np.array_equal(other.state(), stream.state())  # looking ahead changes nothing
    for one, another in zip(
        stream.append(*some(columns, rest)), other.append(*some(columns, rest)), strict=True
    ):
        assert np.array_equal(one, another)
    assert np.isnan(ahead[2]).all()
    np.testing.assert_array_less(0, ahead[1])


def test_what_is_wrong_is_refused(world):
    law, columns = arguments(world, scattered(20))
    time, value, noise, *others = columns
    wrong = {
        "in order": (time[::-1].copy(), value, noise, *others),
        "differ in length": (time, value[:-1], noise, *others),
        "not positive": (time, value, 0 * noise, *others),
        "not finite": (time, value * np.inf, noise, *others),
        "without a readout": (time, value, noise, others[0] + np.int32(9), *others[1:]),
    }
    for message, rows in wrong.items():
        with pytest.raises(ValueError, match=message):
            _core.evidence(law, *rows)
        with pytest.raises(ValueError, match=message):
            _core.Stream(law).append(*rows)


def test_a_row_before_the_last_one_is_refused(world):
    law, columns = arguments(world, scattered(20))
    stream = _core.Stream(law)
    stream.append(*some(columns, slice(10, 20)))
    with pytest.raises(ValueError, match="in order"):
        stream.append(*some(columns, slice(0, 1)))


def test_gaps_that_differ_by_rounding_are_one():
    """Times far from zero: the spacing of a grid is known to their rounding only."""
    time = 1e6 + np.arange(500) / 10.0
    gaps, _ = distinct_gaps(time)
    assert len(gaps) == 1
    world = World.of("default")
    near, far = (scattered(500)._replace(time=t) for t in (time - 1e6, time))
    near, far = (rows._replace(basis=0 * rows.basis) for rows in (near, far))
    values = [world.core().evidence(rows).value for rows in (near, far)]
    np.testing.assert_allclose(*values, rtol=1e-8)
