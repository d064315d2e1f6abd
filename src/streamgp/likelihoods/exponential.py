"""Waiting times."""

import dataclasses

from streamgp.likelihoods.gamma import PositiveMean
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Exponential(PositiveMean):
    """y > 0 has an exponential distribution of mean exp(f)."""

    @property
    def _shape(self) -> float:
        return 1.0
