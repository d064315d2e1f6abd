"""Reader: what a chain says of latent functions and channels anywhere, past and future."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.data.batch import Batch
from streamgp.inference.chain.elements import taken
from streamgp.inference.chain.joint import joint
from streamgp.inference.chain.known import Known
from streamgp.inference.chain.law import Between
from streamgp.inference.chain.places import Places, places
from streamgp.inference.chain.seen import Seen
from streamgp.inference.chain.state import ChainState
from streamgp.inference.chain.stretch import Pairs
from streamgp.inference.learner import unobserved
from streamgp.inference.posterior import Marginals
from streamgp.inference.weight_uncertainty import spread_of_weights

Inputs = Float[np.ndarray, "N P"]


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """A state that is asked for predictions.

    Attributes:
        state: What is known.
        weight_uncertainty: Whether what data leave open about mixing weights is included.
    """

    state: ChainState
    weight_uncertainty: bool

    @property
    def _known(self) -> Known:
        return self.state.whole.known

    def marginals(self, batch: Batch) -> Marginals:
        """q(f) of rows anywhere."""
        seen, pairs = self._seen(batch)
        return seen.marginals(pairs, self._known.weights)

    def channel(
        self, x: Inputs, channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters of a channel at each input."""
        model = self.state.plain
        latents = model.channels[channel].likelihood.latents
        if not len(x):
            return np.zeros((0, latents)), np.zeros((0, latents, latents))
        batch = unobserved(model, x, channel)
        seen, pairs = self._seen(batch)
        at_rows = seen.marginals(pairs, self._known.weights)
        mean, covariance = at_rows.mean.reshape(len(x), latents), at_rows.covariance[0]
        if self.weight_uncertainty:
            means, own = self._means(seen.between, pairs), self.state.open_weights[channel]
            covariance = covariance + np.einsum("nq,jqkr,nr->njk", means, own, means)
        return mean, covariance

    def joint(
        self, x: Inputs, channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """Mean and covariance of several channels at all inputs together."""
        if not len(x):
            return np.zeros(0), np.zeros((0, 0))
        mean, covariance = joint(self.state.whole, x, channels)
        if self.weight_uncertainty:
            latents = self.latent_means(x)
            open_weights = [self.state.open_weights[channel] for channel in channels]
            covariance += block_diag(*(spread_of_weights(latents, own) for own in open_weights))
        return mean, covariance

    def latent_means(self, x: Inputs) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""
        found = places(self._known, x[:, 0])
        return self._means(found.between, self._pairs(found))

    def _seen(self, batch: Batch) -> tuple[Seen, Pairs]:
        found = places(self._known, batch.x[:, 0])
        seen = Seen.through(self._known, self.state.plain, batch, found.between)
        return seen, self._pairs(found)

    def _pairs(self, found: Places) -> Pairs:
        """The states around each input."""
        return taken(self._known.pairs(found.number, found.which), found.of_row)

    def _means(self, between: Between, pairs: Pairs) -> Float[np.ndarray, "N Q"]:
        law = self._known.law
        states = (pairs.mean @ self._known.weights.first) * law.scale_of_two
        return np.einsum("ni,ni,qi->nq", between.design, states, law.owns)
