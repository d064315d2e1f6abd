"""E and M steps in turn: what an M step learned is kept if the bound says so after an E step."""

import types

import numpy as np
import pytest

from streamgp.inference.alternating import alternated
from streamgp.inference.e_step import Fit


class Guesses:
    """M steps that go from guess to guess; the worth of each is known beforehand."""

    batch, tolerance = types.SimpleNamespace(size=10), 1e-4

    def __init__(self, *worths):
        self.worths = worths

    def e(self, trial, rows, tolerance):
        return Fit((*rows, trial), None, None, 0.0), 1

    def m(self, trial, fit, evaluations):
        return trial + 1, evaluations

    def worth(self, trial, fit):
        return self.worths[trial]


@pytest.mark.parametrize(
    ("worths", "best", "rounds", "evaluations"),
    [
        ((0.0, 2.0, 3.0), 2, 3, 50),
        ((0.0, 2.0, 1.0), 1, 4, 50),
        ((0.0, -1e-9, 5.0), 0, 3, 40),
        ((0.0, np.nan, 5.0), 0, 3, 40),
        ((0.0, np.inf, np.nan), 1, 4, 50),
    ],
)
def test_learning_ends_at_the_last_guess_that_was_no_worse(worths, best, rounds, evaluations):
    trial, fit, *work = alternated(Guesses(*worths), 0, (), (40, 10), 1)
    assert trial == best
    assert fit.rows[-1] == best
    assert best == 2 or best + 1 not in fit.rows  # an E step that failed leaves nothing behind
    assert work == [rounds, evaluations]


def test_without_m_steps_there_is_one_e_step():
    trial, fit, *work = alternated(Guesses(0.0), 0, (), (), 1)
    assert (trial, fit.rows, work) == (0, (0,), [1, 0])
