"""Rows between others: what is known before and after them takes the place of these others."""

import itertools

import numpy as np
import pytest

from streamgp.inference.over_time.states import ALONE, Around
from tests.core.worlds import CASES, World, scattered

NAMES = pytest.mark.parametrize("name", CASES)
STOPS = np.array([1, 17, 18, 44])


def readouts(core, rows):
    """How f at each row follows from all numbers of the states."""
    _, (_, _, _, channel, own, feature, features, _), _ = core._arguments(rows)
    seen = np.where(feature < 0, 1.0, features[:, feature])
    return own[channel] * seen


def pieces(core, rows):
    """The rows cut at some stops, each piece with what is known around it."""
    stops = core.checkpoints(rows, STOPS)
    filters = [None, *(stop.before for stop in stops)]
    afters = [*(stop.after for stop in stops), None]
    ends = [0, *STOPS.tolist(), len(rows.time)]
    for (a, b), *around in zip(itertools.pairwise(ends), filters, afters, strict=True):
        yield slice(a, b), Around(*around)


@NAMES
def test_pieces_are_smoothed_as_the_whole(name):
    core, rows = World.of(name, 2).core(), scattered(60, asking=0.2)
    value, *whole = core.smoothed(rows)
    total = 0.0
    for own, around in pieces(core, rows):
        found, *moments = core.smoothed(rows.take(own), around)
        total += found
        for got, wanted in zip(moments, whole, strict=True):
            np.testing.assert_allclose(got, wanted[own], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(total, value, rtol=1e-9)


@NAMES
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "pieces"])
def test_states_tell_what_is_smoothed(name, cut):
    core, rows = World.of(name, 2).core(), scattered(60, asking=0.3)
    _, mean, variance = core.smoothed(rows)
    every = pieces(core, rows) if cut else [(slice(None), ALONE)]
    for own, around in every:
        some = rows.take(own)
        asked = np.isnan(some.value)
        at, seen = core.states(some, around), readouts(core, some)[asked]
        np.testing.assert_allclose(
            np.sum(seen * at.mean, axis=1), mean[own][asked], rtol=1e-8, atol=1e-9
        )
        spread = np.einsum("md,mde,me->m", seen, at.covariance, seen)
        np.testing.assert_allclose(spread, variance[own][asked], rtol=1e-7, atol=1e-9)
        for covariance in at.covariance:
            np.testing.assert_array_equal(covariance, covariance.T)


@NAMES
def test_joint_covariances_of_a_piece_are_those_of_the_whole(name):
    core, rows = World.of(name, 2).core(), scattered(60, asking=0.3)
    means, covariance = core.joint(rows)
    number = np.cumsum(np.isnan(rows.value)) - 1
    for own, around in pieces(core, rows):
        some = rows.take(own)
        which = number[own][np.isnan(some.value)]
        got = core.joint(some, around)
        np.testing.assert_allclose(got[0], means[which], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(got[1], covariance[np.ix_(which, which)], rtol=1e-7, atol=1e-9)


def test_what_is_of_another_law_is_refused():
    rows = scattered(20)
    one, other = World.of("default", 2).core(), World.of("season", 2).core()
    (around,) = other.checkpoints(rows, np.array([9]))
    for wrong in (Around(around.before, None), Around(None, around.after)):
        with pytest.raises(ValueError, match="of another law"):
            one.smoothed(rows.take(slice(9)), wrong)
    with pytest.raises(ValueError, match="rows in order"):
        one.checkpoints(rows, np.array([20]))


def test_numbers_beyond_all_bounds_stay_in_theirs():
    """Readouts so large that variances overflow: what comes is no number, and no more."""
    core, rows = World.of("default", 2).core(), scattered(40, asking=0.5)
    core._readouts *= 1e200
    with np.errstate(all="ignore"):
        at = core.states(rows)
    assert len(at.mean) == np.isnan(rows.value).sum()
    assert not np.isfinite(core.log_evidence(rows))
