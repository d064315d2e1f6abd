"""Reading: what the past says under some weights, noises and levels.

With ℓ_jq the loading of latent parameter j on latent function q, τ_j the prior spread of its mean
weights and s the strength that its noise gives a row, the sums A of a channel (`past`) are read as

    Λ_qr = Σ s ℓ_jq ℓ_kr A_jk,qr,   Λ_q(j) = Σ s ℓ_kq τ_j A_jk,qh,   λ_q = Σ s ℓ_jq a_j,q,

a site on v, and beside it −½ Σ s ℓ_jq ℓ_kq slack_jk,q + ½ count·log s − ½ s·energy. That is what
past rows would say were they still there: exactly so for normal noise, by the local quadratic of
each log-density for the others.
"""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float

from streamgp.inference.past import Past
from streamgp.inference.sites import Site
from streamgp.model.multitask import MultiTaskGP, Outputs


class ByReading(NamedTuple):
    """Derivatives by the loadings, and by the logarithm of each channel's strength."""

    loadings: Float[np.ndarray, "O Q"]
    log_strength: Float[np.ndarray, " D"]


class Inner(NamedTuple):
    """Inner products of the sums A, a of each pair and latent parameter with Λ̄ and λ̄.

    Λ̄ and λ̄ are the derivatives of the bound by the site.

    Attributes:
        states: ⟨A_qr, Λ̄_qr⟩ of each pair and each two latent functions.
        across: s τ ⟨A_qh, Λ̄_q(k)⟩ of each pair (j, k), with k its second and its first; None if
            nothing is kept across latent functions and mean functions.
        means: s τ_j τ_k ⟨A_hh, Λ̄_(j)(k)⟩ of each pair.
        linear: ⟨a_q, λ̄_q⟩ of each latent parameter and latent function.
        mean_linear: a_h·λ̄_(j) of each latent parameter and mean function.
    """

    states: Float[np.ndarray, "C Q Q"]
    across: tuple[Float[np.ndarray, "C Q"], Float[np.ndarray, "C Q"]] | None
    means: Float[np.ndarray, " C"]
    linear: Float[np.ndarray, "O Q"]
    mean_linear: Float[np.ndarray, "O B"]


class Totals(Protocol):
    """What the past says beside its site."""

    @property
    def slack(self) -> Float[np.ndarray, "C Q"]:
        """Σ P·open variance of each pair and latent function."""

    @property
    def count(self) -> Float[np.ndarray, " D"]:
        """The number of rows of each channel."""

    @property
    def energy(self) -> Float[np.ndarray, " D"]:
        """Σ P⁻¹b² of each channel whose noise scales its sites."""


@dataclasses.dataclass(frozen=True, eq=False)
class Reading:
    """Weights, noises and spreads under which the past is read.

    They may be those of several models that read pasts of their own: then arrays have a first axis
    more, in `beside` and `pulled` as well.

    Attributes:
        outputs: The latent parameters of all channels and their pairs.
        loadings: ℓ of each latent parameter.
        spreads: τ of each latent parameter.
        strength: s of each channel.
    """

    outputs: Outputs
    loadings: Float[np.ndarray, "*K O Q"]
    spreads: Float[np.ndarray, "*K O B"]
    strength: Float[np.ndarray, "*K D"]

    @classmethod
    def of(cls, model: MultiTaskGP) -> "Reading":
        """The reading of a plain model."""
        loadings = np.concatenate([channel.loadings for channel in model.channels])
        strength = np.array([channel.likelihood.strength for channel in model.channels])
        return cls(model.outputs, loadings, model.basis_spreads(), strength)

    # -- the site --------------------------------------------------------------------------------

    def site(self, past: Past) -> Site:
        """λ and Λ on v: latent functions and, last, the weights of the mean functions."""
        linear = self._linear(past)
        pairs = zip(past.parts, past.precision, strict=True)
        blocks = [self._block(sums, q, r) for (q, r), sums in pairs]
        ends = np.cumsum([0, *map(len, linear)])
        whole = np.empty((ends[-1], ends[-1]))
        for (q, r), block in zip(past.parts, blocks, strict=True):
            whole[ends[q] : ends[q + 1], ends[r] : ends[r + 1]] = block
            whole[ends[r] : ends[r + 1], ends[q] : ends[q + 1]] = block.T
        return Site(np.concatenate(linear), whole)

    def _linear(self, past: Past) -> list[Float[np.ndarray, " _"]]:
        strength = self.strength[self.outputs.channel]
        latent = [
            (strength * own) @ a for own, a in zip(self.loadings.T, past.linear[:-1], strict=True)
        ]
        return [*latent, np.ravel(strength[:, None] * self.spreads * past.linear[-1])]

    def _block(self, sums: Float[np.ndarray, "C _ _"], q: int, r: int) -> Float[np.ndarray, "_ _"]:
        """Λ between two parts of v."""
        latents = self.loadings.shape[1]
        if r < latents:
            return _weighted(self._pair_weights(q, r), sums)
        if q < latents:
            count, width, basis = sums.shape
            columns = self._toward(q) @ sums.reshape(count, width * basis)
            columns = columns.reshape(len(self.loadings), width, basis) * self.spreads[:, None, :]
            return columns.transpose(1, 0, 2).reshape(width, self.spreads.size)
        return self._mean_block(sums)

    def _pair_weights(self, q: int, r: int) -> Float[np.ndarray, " C"]:
        """s ℓ_jq ℓ_kr of each pair, in both orders where j and k differ."""
        left, right, apart = self.outputs.left, self.outputs.right, self.outputs.apart
        of_q, of_r = self.loadings[:, q], self.loadings[:, r]
        both = of_q[left] * of_r[right] + apart * of_q[right] * of_r[left]
        return self._pair_strength * both

    @property
    def _pair_strength(self) -> Float[np.ndarray, "*K C"]:
        return self.strength[..., self.outputs.pair_channel]

    def _toward(self, q: int) -> Float[np.ndarray, "O C"]:
        """s ℓ_kq of each pair (j, k) in the row of j, and s ℓ_jq in that of k where they differ."""
        own, outputs = self.loadings[:, q], self.outputs
        strength = self._pair_strength
        found = outputs.by_left * (strength * own[outputs.right])
        return found + outputs.by_right * (strength * own[outputs.left])

    def _mean_block(self, sums: Float[np.ndarray, "C B B"]) -> Float[np.ndarray, "K K"]:
        """Λ of the mean functions' weights: s τ_j τ_k A_jk,hh."""
        left, right = self.outputs.left, self.outputs.right
        count, basis = self.spreads.shape
        whole = np.zeros((count, count, basis, basis))
        scaled = sums * self._pair_strength[:, None, None]
        scaled = scaled * self.spreads[left][:, :, None] * self.spreads[right][:, None, :]
        whole[left, right] = scaled
        whole[right, left] = np.swapaxes(scaled, 1, 2)
        return whole.transpose(0, 2, 1, 3).reshape(count * basis, count * basis)

    # -- beside the site -------------------------------------------------------------------------

    def beside(self, past: Totals) -> float:
        """What the past says of weights and noises that is not a function of v."""
        own = past.count * np.log(self.strength) - self.strength * past.energy
        return 0.5 * (own.sum(axis=-1) - self.open(past).sum(axis=(-2, -1)))

    def open_variance(self, past: Past, site: Site) -> Float[np.ndarray, " Q"]:
        """The part of each latent function's variance at past rows that its points leave open.

        Rows count by how precisely they observe the function. Zero where nothing was observed.
        """
        left = self.open(past).sum(axis=0)
        traces = np.diagonal(site.precision)
        ends = np.cumsum([0, *past.sizes[:-1]])
        explained = np.array([traces[a:b].sum() for a, b in itertools.pairwise(ends)])
        return left / np.maximum(left + explained, 1e-300)

    def open(self, past: Totals) -> Float[np.ndarray, "C Q"]:
        """s ℓ_jq ℓ_kq·slack of each pair, in both orders."""
        return self.slack_weights * past.slack

    @functools.cached_property
    def slack_weights(self) -> Float[np.ndarray, "C Q"]:
        """s ℓ_jq ℓ_kq of each pair, in both orders."""
        outputs = self.outputs
        products = self.loadings[..., outputs.left, :] * self.loadings[..., outputs.right, :]
        return (self._pair_strength * outputs.entries)[..., None] * products

    # -- derivatives -----------------------------------------------------------------------------

    def adjoint(
        self, past: Past, by_linear: Float[np.ndarray, " S"], by_precision: Float[np.ndarray, "S S"]
    ) -> ByReading:
        """Derivatives of the bound, `beside` included, from those by λ and Λ."""
        parts = _Parts.of(past, self, by_linear, by_precision)
        inner = Inner(
            self._inner(past, parts),
            self._mean_inner(past, parts),
            self._of_means(past, parts),
            np.stack([a @ parts.linear[q] for q, a in enumerate(past.linear[:-1])], axis=1),
            past.linear[-1] * parts.linear[-1].reshape(self.spreads.shape),
        )
        return self.pulled(past, inner)

    def pulled(self, totals: Totals, inner: Inner) -> ByReading:
        """Derivatives of the bound, `beside` included, from inner products with λ̄ and Λ̄."""
        outputs, strength = self.outputs, self._pair_strength[..., None]
        left, right = self.loadings[..., outputs.left, :], self.loadings[..., outputs.right, :]
        # Of Σ s ℓ_jq ℓ_kr G_qr, where G holds the inner products of A with Λ̄.
        states = inner.states.copy()
        diagonal = np.arange(states.shape[-1])
        states[..., diagonal, diagonal] -= 0.5 * totals.slack
        of_left = strength * np.einsum("...qr,...r->...q", states, right)
        of_right = strength * np.einsum("...qr,...r->...q", states, left)
        said = outputs.entries * np.sum(of_left * left, axis=-1)
        if inner.across is not None:
            toward_right, toward_left = inner.across
            of_left, of_right = of_left + toward_right, of_right + toward_left
            said += 2 * np.sum(toward_right * left, axis=-1)
            said += 2 * outputs.apart * np.sum(toward_left * right, axis=-1)
        said += outputs.entries * inner.means
        by_loadings = 2 * (outputs.by_left @ of_left + outputs.by_right @ of_right)
        of_output = self.strength[..., outputs.channel]
        by_loadings = by_loadings + of_output[..., None] * inner.linear
        told = of_output * np.sum(inner.linear * self.loadings, axis=-1)
        told += of_output * np.sum(self.spreads * inner.mean_linear, axis=-1)
        by_strength = 0.5 * (totals.count - self.strength * totals.energy)
        by_strength += told @ outputs.by_channel.T + said @ outputs.pairs_by_channel.T
        return ByReading(by_loadings, by_strength)

    def stiffness(self, past: Past, second: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "C Q Q"]:
        """Σ s P E[u uᵀ] of each pair over all rows, where E[v vᵀ] is `second`."""
        parts = _Parts.of(past, self, np.diag(second), second)
        found = self._inner(past, parts)
        diagonal = np.arange(found.shape[1])
        found[:, diagonal, diagonal] += past.slack
        return self._pair_strength[:, None, None] * found

    def _inner(self, past: Past, parts: "_Parts") -> Float[np.ndarray, "C Q Q"]:
        """⟨A_qr, Λ̄_qr⟩ of each pair."""
        latents = self.loadings.shape[1]
        found = np.zeros((len(self.outputs.left), latents, latents))
        for (q, r), a in zip(past.parts, past.precision, strict=True):
            if r < latents:
                found[:, q, r] = a.reshape(len(a), -1) @ np.ravel(parts.precision(q, r))
                found[:, r, q] = found[:, q, r]
        return found

    def _mean_inner(
        self, past: Past, parts: "_Parts"
    ) -> tuple[Float[np.ndarray, "C Q"], Float[np.ndarray, "C Q"]]:
        """s τ ⟨A_qh, Λ̄_q(k)⟩ of each pair (j, k), with k its second and its first."""
        latents, count = self.loadings.shape[1], len(self.outputs.left)
        toward_right, toward_left = np.zeros((2, count, latents))
        numbers = np.arange(count)
        for (q, r), a in zip(past.parts, past.precision, strict=True):
            if q < latents == r:
                width, outputs = a.shape[1] * a.shape[2], len(self.spreads)
                by = parts.precision(q, r).reshape(a.shape[1], outputs, a.shape[2]) * self.spreads
                crossed = a.reshape(count, width) @ by.transpose(1, 0, 2).reshape(outputs, width).T
                toward_right[:, q] = crossed[numbers, self.outputs.right]
                toward_left[:, q] = crossed[numbers, self.outputs.left]
        strength = self._pair_strength[:, None]
        return strength * toward_right, strength * toward_left

    def _of_means(self, past: Past, parts: "_Parts") -> Float[np.ndarray, " C"]:
        """⟨Λ, Λ̄⟩ among the weights of mean functions."""
        latents, (count, basis) = self.loadings.shape[1], self.spreads.shape
        left, right = self.outputs.left, self.outputs.right
        by = parts.precision(latents, latents).reshape(count, basis, count, basis)
        own = by.transpose(0, 2, 1, 3)[left, right]
        own = own * self.spreads[left][:, :, None] * self.spreads[right][:, None, :]
        return self._pair_strength * np.sum(own * past.precision[-1], axis=(1, 2))


class _Parts(NamedTuple):
    """Derivatives by λ and Λ, part by part."""

    linear: list[Float[np.ndarray, " _"]]
    whole: Float[np.ndarray, "S S"]
    ends: list[int]

    @classmethod
    def of(
        cls,
        past: Past,
        reading: Reading,
        by_linear: Float[np.ndarray, " S"],
        by_precision: Float[np.ndarray, "S S"],
    ) -> "_Parts":
        sizes = [*past.sizes[:-1], reading.spreads.size]
        ends = [0, *itertools.accumulate(sizes)]
        return cls(np.split(by_linear, ends[1:-1]), by_precision, ends)

    def precision(self, q: int, r: int) -> Float[np.ndarray, "_ _"]:
        return self.whole[self.ends[q] : self.ends[q + 1], self.ends[r] : self.ends[r + 1]]


def _weighted(
    weights: Float[np.ndarray, " C"], matrices: Float[np.ndarray, "C _ _"]
) -> Float[np.ndarray, "_ _"]:
    """Σ_c weights_c · matrices_c."""
    return (weights @ matrices.reshape(len(weights), -1)).reshape(matrices.shape[1:])


def by_channels(model: MultiTaskGP, by: ByReading) -> list[dict[str, Any]]:
    """Derivatives by the parameters of each channel of a plain model."""
    found = []
    for d, channel in enumerate(model.channels):
        first = model.outputs.first[d]
        loadings = by.loadings[first : first + channel.likelihood.latents]
        noise = channel.likelihood.strength_gradient(float(by.log_strength[d]))
        found.append({"likelihood": noise, **channel.by_loadings(loadings)})
    return found
