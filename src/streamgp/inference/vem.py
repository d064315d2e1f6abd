"""How hyperparameters are learned, and what a step of learning reports."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.scoring import Scored
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class VEM:
    """Variational EM: how hyperparameters are learned.

    Args:
        rounds: How often E and M step alternate. One is enough when every channel is conjugate:
            the bound is then collapsed.
        evaluations: How often an M step may evaluate the bound and its gradient.
        every: With inducing points, hyperparameters are learned once that many observations have
            come since they last were, sooner while there are few. On rows, they are learned when
            data have grown by a part, or come as nobody expected.
    """

    rounds: int = 2
    evaluations: int = 40
    every: int = 100


class Info(NamedTuple):
    """What happened in a step.

    Attributes:
        bound: L_C of the batch: the first batch's is the ordinary evidence lower bound.
        scored: Each row, before learning from it.
        e_rounds: How many rounds the E steps took.
        m_evaluations: How often the M steps evaluated the bound.
        finite: Whether the new state is.
    """

    bound: float
    scored: Scored
    e_rounds: int
    m_evaluations: int
    finite: bool

    @property
    def log_predictive(self) -> Float[np.ndarray, " N"]:
        """Of each row, before learning from it."""
        return self.scored.log_predictive


def heard_with(heard: Float[np.ndarray, " D"], batch: Batch) -> Float[np.ndarray, " D"]:
    """The observations of each channel, those of a batch included."""
    heard = heard.copy()
    for group in batch.groups:
        heard[group.channel] += len(group.y)
    return heard
