"""What is known of data that are not kept as rows: one site on the inducing values per channel.

A channel's rows with sites (b, P) and features a, f = a·v + rest, have said exp(λᵀv − ½vᵀΛv) with

    λ = Σ b a,  Λ = Σ P aaᵀ,  and beside it  slack = Σ P·Var(rest),  a count and an energy Σ P⁻¹b²,

at unit noise where noise is a common factor of the sites. Noises and loadings that are learned
later then reinterpret the past. With s the strength of the new noise and r_q = new / old loading on
latent function q, a channel of one latent parameter says s·rλ and s·rΛr, and beside it
½ count·log s − ½ s·energy − ½ s Σ r²·slack. That is exact for normal noise. What channels of
several latent parameters have said of v stays as it is.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, Site, firm, mapped_rows, times
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.model.mixing import Projection
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import symmetric
from streamgp.parameters import free_size
from streamgp.registry import storable

Maps = Sequence[Float[np.ndarray, "_ _"]]
_REACH = 3.0  # prior deviations: what a row asks for beyond them is not believed
_LEAST = 1e-12  # of the largest loading: one that is less says nothing to be reinterpreted


class Reading(NamedTuple):
    """How sites of channels are read.

    Attributes:
        strength: s of each channel.
        ratio: r of each channel and latent function.
        per_loading: The derivative of r by the new loading; zero where r is fixed.
    """

    strength: Float[np.ndarray, " D"]
    ratio: Float[np.ndarray, "D Q"]
    per_loading: Float[np.ndarray, "D Q"]

    @classmethod
    def of(cls, model: MultiTaskGP, anchor: MultiTaskGP) -> "Reading":
        """Under a plain model, of sites that were found under another."""
        strength = np.array([channel.likelihood.strength for channel in model.channels])
        latents = sum(model.draws)
        ratio, slope = np.ones((len(strength), latents)), np.zeros((len(strength), latents))
        pairs = zip(model.channels, anchor.channels, strict=True)
        for d, (channel, before) in enumerate(pairs):
            if len(channel.loadings) == 1:
                old = before.loadings[0]
                usable = np.abs(old) > _LEAST * np.max(np.abs(old), initial=0.0)
                slope[d] = np.where(usable, 1 / np.where(usable, old, 1.0), 0.0)
                ratio[d] = np.where(usable, channel.loadings[0] * slope[d], 1.0)
        return cls(strength, ratio, slope)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Absorbed:
    """The sites of all channels, on the whitened inducing values and mean weights.

    Attributes:
        linear: λ of each channel.
        precision: Λ.
        slack: Σ P·open variance of each channel and latent function, loadings included.
        count: The number of rows of each channel; of weighted rows, the sum of their weights.
        energy: Σ P⁻¹b² of each channel whose noise scales its sites, zero of the others.
    """

    linear: Float[np.ndarray, "D S"]
    precision: Float[np.ndarray, "D S S"]
    slack: Float[np.ndarray, "D Q"]
    count: Float[np.ndarray, " D"]
    energy: Float[np.ndarray, " D"]

    @classmethod
    def none(cls, model: MultiTaskGP, sizes: Sequence[int]) -> "Absorbed":
        """No data, at so many inducing points of each latent function."""
        channels = len(model.channels)
        width = sum(sizes) + len(model.outputs.channel) * model.basis_size
        return cls(
            np.zeros((channels, width)),
            np.zeros((channels, width, width)),
            np.zeros((channels, len(sizes))),
            np.zeros(channels),
            np.zeros(channels),
        )

    def arrays(self) -> list[np.ndarray]:
        """All numbers."""
        return [self.linear, self.precision, self.slack, self.count, self.energy]

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> "Absorbed":
        """The same with all numbers changed."""
        return Absorbed(*map(change, self.arrays()))

    def __add__(self, other: "Absorbed") -> "Absorbed":
        """What both said."""
        return Absorbed(*map(np.add, self.arrays(), other.arrays()))

    # -- reading ---------------------------------------------------------------------------------

    def site(self, reading: Reading, sizes: Sequence[int]) -> Site:
        """What all channels say of v."""
        linear, precision = np.zeros(self.linear.shape[1]), np.zeros(self.precision.shape[1:])
        for d, (strength, ratio) in enumerate(zip(reading.strength, reading.ratio, strict=True)):
            r = _along(ratio, sizes, len(linear))
            linear += strength * r * self.linear[d]
            precision += strength * (r[:, None] * self.precision[d]) * r
        return Site(linear, precision)

    def beside(self, reading: Reading) -> float:
        """What the data said of noises and weights that is not a function of v."""
        energy = self.energy + np.sum(reading.ratio**2 * self.slack, axis=1)
        own = self.count * np.log(reading.strength) - reading.strength * energy
        return 0.5 * float(np.sum(own))

    def adjoint(
        self,
        reading: Reading,
        sizes: Sequence[int],
        by_linear: Float[np.ndarray, " S"],
        by_precision: Float[np.ndarray, "S S"],
    ) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D Q"]]:
        """Derivatives by log s and by r, `beside` included, from those by the site."""
        by_strength, by_ratio = np.empty(len(self.count)), np.empty(self.slack.shape)
        ends = np.cumsum([0, *sizes])
        for d, (strength, ratio) in enumerate(zip(reading.strength, reading.ratio, strict=True)):
            r = _along(ratio, sizes, len(by_linear))
            bent = (self.precision[d] * by_precision) @ r
            told = self.linear[d] * by_linear
            by_each = np.add.reduceat(np.append(told + 2 * bent, 0.0), ends)[: len(sizes)]
            by_ratio[d] = strength * (
                np.where(np.diff(ends) > 0, by_each, 0.0) - ratio * self.slack[d]
            )
            energy = self.energy[d] + ratio**2 @ self.slack[d]
            said = r @ told + r @ bent
            by_strength[d] = strength * said + 0.5 * (self.count[d] - strength * energy)
        return by_strength, by_ratio

    # -- other inducing values, other hyperparameters ---------------------------------------------

    def read(self, reading: Reading, sizes: Sequence[int]) -> "Absorbed":
        """The same as if it had been found under the loadings of a reading."""
        if np.all(reading.ratio == 1.0):
            return self
        r = np.stack([_along(own, sizes, self.linear.shape[1]) for own in reading.ratio])
        return dataclasses.replace(
            self,
            linear=r * self.linear,
            precision=r[:, :, None] * self.precision * r[:, None, :],
            slack=reading.ratio**2 * self.slack,
        )

    def through(self, maps: Maps) -> "Absorbed":
        """The same on v_new when v_old = C·v_new, C of each latent function."""
        turned = [c.T for c in maps]
        linear = mapped_rows(self.linear.T, turned).T
        precision = np.stack([_both_sides(own, turned) for own in self.precision])
        return dataclasses.replace(self, linear=linear, precision=precision)

    def projected(self, transitions: Maps) -> "Absorbed":
        """The same on other inducing values: v_old = Tᵀv_new + rest, rest ~ N(0, I − TᵀT).

        What the rest leaves open joins the open variance.
        """
        moved, begin = self.through([t.T for t in transitions]), 0
        slack = self.slack.copy()
        for q, t in enumerate(transitions):
            own = self.precision[:, begin : begin + t.shape[1], begin : begin + t.shape[1]]
            slack[:, q] += np.einsum("dmn,mn->d", own, np.eye(t.shape[1]) - t.T @ t)
            begin += t.shape[1]
        return dataclasses.replace(moved, slack=slack)

    def extended(self, sizes: Sequence[int], wider: Sequence[int]) -> "Absorbed":
        """The same with further inducing values behind each latent function's own."""
        place, begin = [], 0
        for size, more in zip(sizes, wider, strict=True):
            place.append(begin + np.arange(size))
            begin += more
        rest = self.linear.shape[1] - sum(sizes)
        places = np.concatenate([*place, begin + np.arange(rest)]).astype(int)
        linear = np.zeros((len(self.count), begin + rest))
        precision = np.zeros((len(self.count), begin + rest, begin + rest))
        linear[:, places] = self.linear
        precision[:, places[:, None], places] = self.precision
        return dataclasses.replace(self, linear=linear, precision=precision)

    def with_channel(self, model: MultiTaskGP, sizes: Sequence[int], basis: int) -> "Absorbed":
        """The same with a further channel, of which nothing is known.

        Args:
            model: With the channel, its last.
            sizes: The number of inducing points of each latent function.
            basis: How many mean functions there were before.
        """
        wider = Absorbed.none(model, sizes)
        points, outputs = sum(sizes), (self.linear.shape[1] - sum(sizes)) // max(basis, 1)
        weights = np.arange(outputs)[:, None] * model.basis_size + np.arange(basis)
        places = np.concatenate([np.arange(points), points + np.ravel(weights)]).astype(int)
        old = len(self.count)
        wider.linear[:old, places] = self.linear
        wider.precision[:old, places[:, None], places] = self.precision
        wider.slack[:old] = self.slack
        wider.count[:old] = self.count
        wider.energy[:old] = self.energy
        return wider


def reach(wrapped: MultiTaskGP, model: MultiTaskGP) -> Float[np.ndarray, " D"]:
    """How far from where it is a row of each channel is believed to want f.

    The site of a row that nobody expected may pull with next to no curvature. Where f is, that is
    right. Under weights or kernels that are learned later it would promise evidence without end,
    and what has been absorbed cannot be revised. A few prior deviations are believed; there is no
    limit where sites are exact, or never read under anything else.
    """
    found = np.full(len(model.channels), np.inf)
    for d, (own, channel) in enumerate(zip(wrapped.channels, model.channels, strict=True)):
        is_read_anew = free_size(own.weights) or free_size(wrapped.kernels)
        if is_read_anew and len(channel.loadings) == 1 and not channel.likelihood.scales_sites:
            variance = channel.scale[0] ** 2 + np.sum(channel.loadings[0] ** 2)
            found[d] = _REACH * np.sqrt(variance)
    return found


def believable(
    wrapped: MultiTaskGP, setting: SparseSetting, rows: RowSites, at_rows: Marginals
) -> RowSites:
    """Sites that ask for no f beyond reach: their curvature is larger, their pull at f the same."""
    limits = reach(wrapped, setting.model)
    linear, precision = rows.linear.copy(), tuple(own.copy() for own in rows.precision)
    for group in setting.batch.groups:
        if np.isfinite(limits[group.channel]):
            own, flat = precision[group.run][group.within][:, 0, 0], group.flat
            linear[flat], held = firm(
                linear[flat], own, at_rows.centred[flat], limits[group.channel]
            )
            precision[group.run][group.within] = held[:, None, None]
    return RowSites(linear, precision)


def absorbed(setting: SparseSetting, rows: RowSites, projection: Projection) -> Absorbed:
    """What a batch says: its rows' sites through their features.

    Args:
        setting: The rows and their features.
        rows: Their sites.
        projection: What inducing values say at the rows.
    """
    model, batch, design = setting.model, setting.batch, setting.features.design
    said = Absorbed.none(model, [len(values) for values in projection.values])
    pulled = times(batch, rows.precision, design)
    for group in batch.groups:
        d, flat = group.channel, group.flat
        channel = model.channels[d]
        strength = channel.likelihood.strength
        precision = rows.precision[group.run][group.within]
        said.linear[d] += design[flat].T @ rows.linear[flat] / strength
        said.precision[d] += symmetric(design[flat].T @ pulled[flat]) / strength
        weight = np.einsum("njk,jq,kq->qn", precision, channel.loadings, channel.loadings)
        said.slack[d] += np.sum(weight * projection.open[:, group.rows], axis=1) / strength
        if not channel.likelihood.scales_sites:
            continue
        p, b = precision[:, 0, 0] / strength, rows.linear[flat] / strength
        said.count[d] += float(p.sum())
        said.energy[d] += float((b**2 / np.where(p > 0, p, 1.0)).sum())
        if batch.energy is not None:
            said.energy[d] += float(batch.energy[group.rows].sum())
    return said


def _along(ratio: Float[np.ndarray, " Q"], sizes: Sequence[int], width: int) -> np.ndarray:
    """r of each entry of v; one for the weights of mean functions."""
    found = np.ones(width)
    found[: sum(sizes)] = np.repeat(ratio, sizes)
    return found


def _both_sides(matrix: Float[np.ndarray, "S S"], maps: Maps) -> Float[np.ndarray, "_ _"]:
    return symmetric(mapped_rows(mapped_rows(matrix, maps).T, maps))
