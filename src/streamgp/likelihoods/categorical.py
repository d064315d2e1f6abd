"""One of K classes."""

import dataclasses

import numpy as np
from jaxtyping import Float

from streamgp.likelihoods.multinomial import SoftmaxCounts
from streamgp.likelihoods.support import IntegerInterval, Support
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Categorical(SoftmaxCounts):
    """y is a class 0 … K−1 with probabilities softmax(f): one latent parameter per class."""

    @property
    def support(self) -> Support:
        return IntegerInterval(0, self.classes - 1)

    def sample(self, f: Float[np.ndarray, "*b J"], rng: np.random.Generator) -> np.ndarray:
        return self._drawn(f, rng)

    def _counts(self, y: Float[np.ndarray, "*b"]) -> Float[np.ndarray, "*b J"]:
        return (np.asarray(y)[..., None] == np.arange(self.classes)).astype(float)

    def _log_ways(self, counts: Float[np.ndarray, "*b J"]) -> float:
        return 0.0
