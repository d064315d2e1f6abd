"""Sums by interval as sites on states and mean weights, under the weights and noises of a reading.

Also the way back: from what all data say of the states to inner products with the sums, which
the derivatives by weights and noises need. Readings and laws may be those of several chains: then
their arrays have a first axis more, and those of sums have it behind the intervals.
"""

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.elements import PairSites
from streamgp.inference.chain.law import Law
from streamgp.inference.chain.segments import Sums, triangle
from streamgp.inference.chain.stretch import Pairs, Weights
from streamgp.inference.reading import Inner, Reading
from streamgp.numerics.batched import turned

_PRICE = 1e-2  # nats that a row in the middle of an interval may cost
_HALVINGS = 20


@dataclasses.dataclass(frozen=True, eq=False)
class Mixing:
    """A reading of sums whose states move by a law, of one chain or of several."""

    reading: Reading
    law: Law

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, "*K O dd"]:
        """The loading of each latent parameter on each number of two states, scaled."""
        loadings = self.reading.loadings[..., self.law.owner]
        return np.tile(loadings * self.law.scale[..., None, :], 2)

    @functools.cached_property
    def resolution(self) -> float:
        """The longest interval whose ends tell nearly all of it.

        Nearly all in terms of the latent functions, and to any row within: what the ends leave open
        at its middle costs the bound ½ s Σ_q ℓ_q² open_q, which matters where noise is small.
        """
        gap = self.law.resolution
        if not np.isfinite(gap):
            return gap
        strength = self.reading.strength[self.reading.outputs.channel]
        gaps = gap * 0.5 ** np.arange(_HALVINGS + 1)
        left_open = self.law.between(np.zeros(len(gaps)), 0.5 * gaps, gaps).open
        price = 0.5 * np.max(strength[:, None] * (self.reading.loadings**2 @ left_open), axis=0)
        price[-1] = 0.0  # the shortest one has to do
        return float(gaps[np.argmax(price <= _PRICE)])

    @property
    def columns(self) -> int:
        """How many numbers g = (1, β) has."""
        return 1 + math.prod(self.reading.spreads.shape[-2:])

    @functools.cached_property
    def _of_states(self) -> Float[np.ndarray, "*K C T"]:
        """s ℓ_j ℓ_k of each pair, in both orders, for each entry of the upper triangle.

        It is zero for the entries of mean functions.
        """
        outputs, basis = self.reading.outputs, self._basis
        *shape, size = self.weights.shape
        weights = np.concatenate([self.weights, np.zeros((*shape, basis))], axis=-1)
        rows, columns, _ = triangle(size + basis)
        left, right = weights[..., outputs.left, :], weights[..., outputs.right, :]
        both = left[..., rows] * right[..., columns]
        both = both + outputs.apart[:, None] * left[..., columns] * right[..., rows]
        return self._pair_strength[..., None] * both

    @functools.cached_property
    def _of_linear(self) -> Float[np.ndarray, "*K O dd"]:
        """s ℓ_j of each latent parameter."""
        return self._strength[..., None] * self.weights

    @property
    def _basis(self) -> int:
        """How many mean functions a latent parameter has at most."""
        return self.reading.spreads.shape[-1]

    @functools.cached_property
    def _toward_means(self) -> Float[np.ndarray, "*K O C dd"]:
        outputs, weights = self.reading.outputs, self.weights[..., None, :, :]
        toward = outputs.by_left[:, :, None] * weights[..., outputs.right, :]
        toward = toward + outputs.by_right[:, :, None] * weights[..., outputs.left, :]
        return self._pair_strength[..., None, :, None] * toward

    @property
    def _pair_strength(self) -> Float[np.ndarray, "*K C"]:
        return self.reading.strength[..., self.reading.outputs.pair_channel]

    @property
    def _strength(self) -> Float[np.ndarray, "*K O"]:
        return self.reading.strength[..., self.reading.outputs.channel]

    # -- sites -----------------------------------------------------------------------------------

    def sites(self, sums: Sums) -> PairSites:
        """What the intervals say."""
        spreads, size, basis = self.reading.spreads, self.weights.shape[-1], self._basis
        (*shape, _, _), columns = sums.linear.shape, self.columns
        place = triangle(size + basis)[2]
        read = np.einsum("n...ct,...ct->n...t", sums.precision, self._of_states)
        precision = np.take(read, place[:size, :size], axis=-1)
        linear, gram = np.zeros((*shape, size, columns)), np.zeros((*shape, columns, columns))
        seen = sums.linear[..., :size]
        linear[..., 0] = np.einsum("n...oi,...oi->n...i", seen, self._of_linear)
        if basis:
            across = sums.precision[..., place[:size, size:]]
            toward = np.einsum("...oci,n...cib->n...iob", self._toward_means, across)
            toward = toward * spreads[..., None, :, :]
            linear[..., 1:] = -toward.reshape(*shape, size, columns - 1)
            pulled = (self._strength[..., None] * spreads) * sums.linear[..., size:]
            gram[..., 0, 1:] = gram[..., 1:, 0] = pulled.reshape(*shape, columns - 1)
            gram[..., 1:, 1:] = -self._among_means(sums.precision[..., place[size:, size:]])
        return PairSites(linear, precision, gram)

    def _among_means(self, among: Float[np.ndarray, "n *K C B B"]) -> Float[np.ndarray, "n *K J J"]:
        """Λ of the mean functions' weights: s τ_j τ_k A_jk,hh."""
        spreads, outputs = self.reading.spreads, self.reading.outputs
        (count, basis), shape = spreads.shape[-2:], among.shape[:-3]
        left, right = outputs.left, outputs.right
        scaled = among * self._pair_strength[..., None, None] * spreads[..., left, :, None]
        scaled = scaled * spreads[..., right, None, :]
        whole = np.zeros((*shape, count, count, basis, basis))
        whole[..., left, right, :, :] = scaled
        whole[..., right, left, :, :] = np.swapaxes(scaled, -1, -2)
        return np.swapaxes(whole, -3, -2).reshape(*shape, count * basis, count * basis)

    # -- derivatives -----------------------------------------------------------------------------

    def inner(self, sums: Sums, moments: "Moments") -> Inner:
        """Inner products of the sums with λ̄ = E[x] and Λ̄ = −½E[xxᵀ], over all intervals."""
        reading, law, size = self.reading, self.law, self.weights.shape[-1]
        spreads, outputs, latents = reading.spreads, reading.outputs, law.latents
        (*chains, count, basis), pairs = spreads.shape, len(outputs.left)
        _, _, place = triangle(size + basis)
        owns, scale = law.owns, law.scale_of_two
        rows, entries, _ = triangle(size)
        second = np.zeros((*moments.xx.shape[:-2], sums.precision.shape[-1]))
        second[..., place[rows, entries]] = moments.xx[..., rows, entries]
        own = np.einsum("n...ct,n...t->...ct", sums.precision, second)[..., place[:size, :size]]
        own = own * (scale[..., :, None] * scale[..., None, :])[..., None, :, :]
        states = -0.5 * owns @ own @ owns.T
        seen = np.einsum("n...oi,n...i->...oi", sums.linear[..., :size], moments.x)
        seen = seen * scale[..., None, :]
        across, means = (np.zeros((*chains, pairs, latents)),) * 2, np.zeros((*chains, pairs))
        mean_linear = np.zeros((*chains, count, basis))
        if basis:
            beta = moments.beta.reshape(*chains, count, basis)
            mean_linear = np.sum(sums.linear[..., size:], axis=0) * beta
            between = sums.precision[..., place[:size, size:]]
            by = moments.x_beta.reshape(-1, *chains, size, count, basis)
            by = by * spreads[..., None, :, :]
            crossed = np.einsum("n...cib,n...iob->...coi", between, by)
            crossed = (crossed * scale[..., None, None, :]) @ owns.T  # C O Q
            crossed = -0.5 * self._pair_strength[..., None, None] * crossed
            numbers = np.arange(pairs)
            across = crossed[..., numbers, outputs.right, :], crossed[..., numbers, outputs.left, :]
            means = self._of_means(sums, place[size:, size:], moments)
        return Inner(states, across, means, seen @ owns.T, mean_linear)

    def _of_means(
        self, sums: Sums, place: np.ndarray, moments: "Moments"
    ) -> Float[np.ndarray, "*K C"]:
        spreads, outputs = self.reading.spreads, self.reading.outputs
        left, right, shape = outputs.left, outputs.right, spreads.shape
        second = np.swapaxes(moments.beta_beta.reshape(*shape, *shape[-2:]), -3, -2)
        own = -0.5 * second[..., left, right, :, :] * spreads[..., left, :, None]
        own = own * spreads[..., right, None, :]
        total = np.sum(sums.precision, axis=0)[..., place]
        return self._pair_strength * np.sum(own * total, axis=(-1, -2))


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of the states x = (a, c) of intervals, scaled, and of β.

    Attributes:
        x: E[x] by interval.
        xx: E[xxᵀ] by interval.
        x_beta: E[xβᵀ] by interval.
        beta: E[β].
        beta_beta: E[ββᵀ].
    """

    x: Float[np.ndarray, "n *K dd"]
    xx: Float[np.ndarray, "n *K dd dd"]
    x_beta: Float[np.ndarray, "n *K dd J"]
    beta: Float[np.ndarray, "*K J"]
    beta_beta: Float[np.ndarray, "*K J J"]

    @classmethod
    def of(cls, pairs: Pairs, weights: Weights) -> "Moments":
        """From q of the states given g = (1, β), and q(β)."""
        second = weights.second
        bent = pairs.mean @ second
        xx = pairs.covariance + bent @ turned(pairs.mean)
        return cls(bent[..., 0], xx, bent[..., 1:], weights.mean, second[..., 1:, 1:])
