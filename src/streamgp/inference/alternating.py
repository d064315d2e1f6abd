"""E and M steps in turn, for both engines.

An M step holds the sites of rows, or q, as they were found. Far from there they may promise what
rows do not keep. So what it learned is judged by the bound after an E step of its own, and learning
ends where it was if that is worse.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from streamgp.inference.e_step import Fit
from streamgp.inference.m_step import FLAT
from streamgp.inference.sites import RowSites

T = TypeVar("T")


class Steps(Protocol[T]):
    """Rows that meet a state. A trial T is a choice of hyperparameters and what it implies."""

    @property
    def tolerance(self) -> float:
        """The gain of the bound, in nats, below which an E step ends."""

    def e(self, trial: T, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""

    def m(self, trial: T, fit: Fit, evaluations: int) -> tuple[T, int]:
        """Hyperparameters that a fit thinks better, and how many evaluations it took."""

    def worth(self, trial: T, fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""


def alternated(
    steps: Steps[T], trial: T, rows: RowSites, evaluations: Sequence[int], size: int
) -> tuple[T, Fit, int, int]:
    """Alternate E and M steps from a trial on, ending with an E step, and never at a lower worth.

    Args:
        steps: How they are made.
        trial: Where to begin.
        rows: The sites that rows begin with.
        evaluations: How many each M step may make.
        size: How many rows there are.

    Returns:
        The hyperparameters with what they imply, their fit, and how many rounds of E steps and
        evaluations of M steps it took.
    """
    # An M step that stops at such gains asks for no finer fit before it.
    early = max(steps.tolerance, FLAT * size)
    first, *later = *[early] * len(evaluations), steps.tolerance
    (fit, e_rounds), m_evaluations = steps.e(trial, rows, first), 0
    for most, tolerance in zip(evaluations, later, strict=True):
        tried, count = steps.m(trial, fit, most)
        found, more = steps.e(tried, fit.rows, tolerance)
        e_rounds, m_evaluations = e_rounds + more, m_evaluations + count
        if not steps.worth(tried, found) >= steps.worth(trial, fit):  # NaN is not
            fit, more = steps.e(trial, fit.rows, steps.tolerance)
            return trial, fit, e_rounds + more, m_evaluations
        trial, fit = tried, found
    return trial, fit, e_rounds, m_evaluations
