"""One of K classes."""

import dataclasses

import numpy as np

from streamgp.likelihoods.arrays import Latent, Observed
from streamgp.likelihoods.multinomial import SoftmaxCounts, indicators
from streamgp.likelihoods.support import IntegerInterval, Support
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Categorical(SoftmaxCounts):
    """One of several classes without an order.

    y is a class number from 0 to K − 1, or a label such as "rain". There is one latent parameter
    per class, and the probabilities of the classes are softmax(f).

    Args:
        classes: The number K of classes; at least 2. There is no default. Count every class that
            may occur, also those that the first data do not have.

    Raises:
        ConfigurationError: If `classes` is not a whole number of at least 2.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"sky": sgp.Categorical(3)}).channels
        ('sky',)
    """

    @property
    def support(self) -> Support:
        return IntegerInterval(0, self.classes - 1)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return self._drawn(f, rng)

    def _counts(self, y: Observed) -> Latent:
        return indicators(np.asarray(y), self.classes)

    def _log_ways(self, counts: Latent) -> float:
        return 0.0
