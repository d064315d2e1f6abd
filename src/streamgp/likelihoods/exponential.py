"""Waiting times."""

import dataclasses

from streamgp.likelihoods.gamma import PositiveMean
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Exponential(PositiveMean):
    """Waiting times between events that occur at random.

    y is a positive number. It has an exponential distribution with mean exp(f), where f is the
    latent parameter. There are no other parameters.
    """

    @property
    def _shape(self) -> float:
        return 1.0
