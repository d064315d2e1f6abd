"""State: what is kept of the past at inducing points."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.posterior import Posterior, condition
from streamgp.inference.sites import Site
from streamgp.inference.sparse.absorbed import Absorbed, Reading
from streamgp.inference.sparse.prior import Points, Prior
from streamgp.inference.weight_uncertainty import open_weights
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import field_names, free_vector, unwrap
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """All that is kept of the past, and nothing that can be derived. It holds no observation.

    Attributes:
        model: The hyperparameters, still wrapped: constrained, with priors.
        points: The inducing points of each latent function.
        absorbed: What data said, by channel, whitened by the prior under `model` at `points`.
        heard: The observations of each channel that it stands for, faded ones in part.
    """

    model: MultiTaskGP
    points: Points
    absorbed: Absorbed
    heard: Float[np.ndarray, " D"]

    # What follows from the fields is computed once, when it is first asked for.

    @functools.cached_property
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""
        return unwrap(self.model)

    @functools.cached_property
    def prior(self) -> Prior:
        """The prior that the site is whitened by."""
        return Prior.of(self.plain, self.points)

    @functools.cached_property
    def reading(self) -> Reading:
        """The noises under which the past is read."""
        return Reading.of(self.plain, self.plain)

    @functools.cached_property
    def site(self) -> Site:
        """What data said of v under the present noises."""
        return self.absorbed.site(self.reading, self.sizes)

    @functools.cached_property
    def posterior(self) -> Posterior:
        """q(v)."""
        return condition(self.site)

    @functools.cached_property
    def open_weights(self) -> tuple[Float[np.ndarray, "_J Q _J Q"], ...]:
        """What data leave open about the loadings of each channel."""
        return open_weights(self.model, self._stiffness)

    @property
    def _stiffness(self) -> Float[np.ndarray, "C Q Q"]:
        """Σ P E[u uᵀ] over all rows, of each pair of latent parameters.

        Sites have loadings in them: with ℓ of both taken out, signs included, it is ⟨Λ, E[vvᵀ]⟩ per
        two functions. Several latent parameters are taken to have the average of what was said of
        them all, and as little of two functions together as their loadings have in common.
        """
        outputs, latents = self.plain.outputs, len(self.sizes)
        found = np.zeros((outputs.pairs, latents, latents))
        ends, second = np.cumsum([0, *self.sizes]), self.posterior.second
        for d, channel in enumerate(self.plain.channels):
            blocks = _sums(self.absorbed.precision[d] * second, ends)
            blocks[np.diag_indices(latents)] += self.absorbed.slack[d]
            common = channel.loadings.T @ channel.loadings
            both = np.outer(np.diag(common), np.diag(common))
            told = np.where(both > 0, blocks * common / np.where(both > 0, both, 1.0), 0.0)
            pairs, j, k = outputs.within[d]
            found[pairs][j == k] += channel.likelihood.strength * told
        return found

    @functools.cached_property
    def open_variance(self) -> Float[np.ndarray, " Q"]:
        """The part of each latent function's variance at past rows that its points leave open."""
        left = self.reading.strength @ self.absorbed.slack
        traces, ends = np.diagonal(self.site.precision), np.cumsum([0, *self.sizes])
        explained = np.array([traces[a:b].sum() for a, b in itertools.pairwise(ends)])
        return left / np.maximum(left + explained, 1e-300)

    @property
    def mean_weights(self) -> Float[np.ndarray, "O B"]:
        """E_q[β]: the expected weights of each latent parameter's mean functions."""
        spreads = self.plain.basis_spreads()
        every = self.posterior.mean
        return spreads * every[len(every) - spreads.size :].reshape(spreads.shape)

    @property
    def kept_rows(self) -> int:
        """None: the past is kept as sites at inducing points."""
        return 0

    @property
    def kept_bytes(self) -> int:
        """None, for the same reason."""
        return 0

    @property
    def explored(self) -> Float[np.ndarray, "_ P"]:
        """Where data were, as the inducing points tell it."""
        return np.concatenate(self.points)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many inducing points each latent function has."""
        return tuple(len(points) for points in self.points)

    @property
    def count(self) -> float:
        """The observations that the state stands for, faded ones in part."""
        return float(np.sum(self.heard))

    def with_channel(self, model: MultiTaskGP, latents: int) -> "State":
        """The same with a further channel, the last of that model, of which nothing is known."""
        return self.replace(
            model=model,
            absorbed=self.absorbed.with_channel(unwrap(model), self.sizes, self.plain.basis_size),
            heard=np.append(self.heard, 0.0),
        )

    def replace(self, **changes: Any) -> "State":
        """A copy with some fields changed, by name."""
        return State(**{**self.__getstate__(), **changes})

    def is_finite(self, before: "State | None" = None) -> bool:
        """Whether all numbers are finite, a model that it shares with another state apart."""
        arrays = [self.heard, *self.absorbed.arrays(), *self.points]
        if before is None or self.model is not before.model:
            arrays.append(free_vector(self.model))
        return math.isfinite(sum(float(array.sum()) for array in arrays))

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the fields only."""
        return {name: getattr(self, name) for name in field_names(State)}


def _sums(own: Float[np.ndarray, "S S"], ends: Int[np.ndarray, " _"]) -> Float[np.ndarray, "Q Q"]:
    """Sums over the blocks of each two latent functions."""
    count = len(ends) - 1
    found = np.empty((count, count))
    for q in range(count):
        for r in range(count):
            found[q, r] = own[ends[q] : ends[q + 1], ends[r] : ends[r + 1]].sum()
    return found
