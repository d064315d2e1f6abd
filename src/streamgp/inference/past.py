"""Past: what past data said, channel by channel and before mixing.

Row n of a channel sees the latent functions through its features φ_n: V = L⁻¹K(Z, x_n) of each
latent function and, last, the channel's mean functions h(x_n). With the row's site (b_n, P_n) on
its latent parameters, what is kept of a channel is

    Σ b_n[j] φ_n,  Σ P_n[j, k] φ_n φ_nᵀ,  Σ P_n[j, k]·open_q(x_n),  a count and an energy Σ P⁻¹b²,

at unit noise where noise is a common factor of the sites. Weights, noises and levels that are
learned later then reinterpret all of it (`reading`).
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Group
from streamgp.inference.e_step import Setting
from streamgp.inference.sites import RowSites
from streamgp.model.mixing import Projection
from streamgp.model.multitask import MultiTaskGP, Outputs
from streamgp.registry import storable

Maps = Sequence[Float[np.ndarray, "_ _"]]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Past:
    """Sums over all rows, of each latent parameter and of each pair of them.

    Latent parameters and pairs are listed as in `Outputs`. Parts of φ are the latent functions and,
    last, the mean functions.

    Attributes:
        linear: Σ b φ of each part, one row per latent parameter.
        precision: Σ P φφᵀ of each two parts that `parts` lists, one matrix per pair.
        slack: Σ P·open variance of each latent function, one row per pair.
        count: The number of rows of each channel; of weighted rows, the sum of their weights.
        energy: Σ P⁻¹b² of each channel whose noise scales its sites, zero of the others.
    """

    linear: tuple[Float[np.ndarray, "O _"], ...]
    precision: tuple[Float[np.ndarray, "C _ _"], ...]
    slack: Float[np.ndarray, "C Q"]
    count: Float[np.ndarray, " D"]
    energy: Float[np.ndarray, " D"]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The two parts that each entry of `precision` is about."""
        return part_pairs(len(self.linear))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of features in each part."""
        return tuple(part.shape[1] for part in self.linear)

    def arrays(self) -> list[np.ndarray]:
        """All numbers."""
        return [*self.linear, *self.precision, self.slack, self.count, self.energy]

    def scaled(self, part: float) -> "Past":
        """What was said, with that part of its say."""
        return self._each(lambda array: part * array)

    def __add__(self, other: "Past") -> "Past":
        """What both said."""
        return Past(
            tuple(map(np.add, self.linear, other.linear)),
            tuple(map(np.add, self.precision, other.precision)),
            self.slack + other.slack,
            self.count + other.count,
            self.energy + other.energy,
        )

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> "Past":
        return Past(
            tuple(map(change, self.linear)),
            tuple(map(change, self.precision)),
            change(self.slack),
            change(self.count),
            change(self.energy),
        )

    # -- other inducing values -------------------------------------------------------------------

    def through(self, maps: Maps) -> "Past":
        """The same on v_new when v_old = C·v_new, C of each latent function: A ← CᵀAC.

        No array is shared with the old sums.
        """
        every = [*maps, np.eye(self.sizes[-1])]  # the mean functions stay
        return Past(
            tuple(a @ c for a, c in zip(self.linear, every, strict=True)),
            tuple(
                every[q].T @ (a @ every[r])
                for (q, r), a in zip(self.parts, self.precision, strict=True)
            ),
            self.slack.copy(),
            self.count.copy(),
            self.energy.copy(),
        )

    def projected(self, transitions: Maps) -> "Past":
        """The same on fewer inducing values: v_old = Tᵀv_new + rest, rest ~ N(0, I − TᵀT).

        What the rest leaves open joins the open variance.
        """
        moved = self.through([t.T for t in transitions])
        for (q, r), a in zip(self.parts, self.precision, strict=True):
            if q == r < len(transitions):
                t = transitions[q]
                moved.slack[:, q] += np.einsum("cmn,mn->c", a, np.eye(t.shape[1]) - t.T @ t)
        return moved

    def extended(self, sizes: Sequence[int]) -> "Past":
        """The same with further inducing values behind each latent function's own."""
        more = [size - own for size, own in zip([*sizes, self.sizes[-1]], self.sizes, strict=True)]
        linear = [np.pad(a, ((0, 0), (0, m))) for a, m in zip(self.linear, more, strict=True)]
        precision = [
            np.pad(a, ((0, 0), (0, more[q]), (0, more[r])))
            for (q, r), a in zip(self.parts, self.precision, strict=True)
        ]
        return dataclasses.replace(self, linear=tuple(linear), precision=tuple(precision))

    def with_channel(self, latents: int, basis_size: int) -> "Past":
        """The same with a further channel, of which nothing is known.

        Args:
            latents: The number of its latent parameters.
            basis_size: The largest number of mean functions of any channel, the new one included.
        """
        outputs, pairs = (0, latents), (0, latents * (latents + 1) // 2)
        more = [0] * (len(self.linear) - 1) + [basis_size - self.sizes[-1]]
        linear = [np.pad(a, (outputs, (0, m))) for a, m in zip(self.linear, more, strict=True)]
        precision = [
            np.pad(a, (pairs, (0, more[q]), (0, more[r])))
            for (q, r), a in zip(self.parts, self.precision, strict=True)
        ]
        slack = np.pad(self.slack, (pairs, (0, 0)))
        counts = np.pad(self.count, (0, 1)), np.pad(self.energy, (0, 1))
        return Past(tuple(linear), tuple(precision), slack, *counts)

    def copy(self) -> "Past":
        """The same numbers in arrays of their own."""
        return self._each(np.copy)


def part_pairs(parts: int) -> list[tuple[int, int]]:
    """The two parts of each block of a matrix that is kept: the upper triangle."""
    return list(itertools.combinations_with_replacement(range(parts), 2))


def empty(outputs: Outputs, sizes: Sequence[int], basis_size: int) -> Past:
    """No data: so many inducing values of each latent function, and so many mean functions."""
    count, pairs, channels = len(outputs.channel), len(outputs.left), len(outputs.first)
    widths = [*sizes, basis_size]
    return Past(
        tuple(np.zeros((count, width)) for width in widths),
        tuple(np.zeros((pairs, widths[q], widths[r])) for q, r in part_pairs(len(widths))),
        np.zeros((pairs, len(sizes))),
        np.zeros(channels),
        np.zeros(channels),
    )


# -- rows ------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """What a batch said: its rows' sites, and what they are about."""

    setting: Setting
    rows: RowSites
    projection: Projection
    basis: Float[np.ndarray, "N B"]


def add(past: Past, said: Said) -> None:
    """Add what a batch said to sums that nobody else holds: they are changed in place."""
    features = np.concatenate([*said.projection.values, said.basis.T])  # φ of each row
    for group, linear, precision in at_unit_noise(said):
        own, left = features[:, group.rows], said.projection.open[:, group.rows]
        add_sites(past, said.setting.model.outputs, group, own, linear, precision, left)
        _add_counts(past, said, group)


def at_unit_noise(
    said: Said,
) -> Iterator[tuple[Group, Float[np.ndarray, "n J"], Float[np.ndarray, "n J J"]]]:
    """The sites of each channel's rows, without the noise where it is a common factor."""
    model, batch = said.setting.model, said.setting.batch
    for group in batch.groups:
        strength = model.channels[group.channel].likelihood.strength
        linear = said.rows.linear[group.flat].reshape(-1, group.latents)
        yield group, linear / strength, said.rows.precision[group.run][group.within] / strength


def add_sites(
    past: Past,
    outputs: Outputs,
    group: Group,
    features: Float[np.ndarray, "S n"],
    linear: Float[np.ndarray, "n J"],
    precision: Float[np.ndarray, "n J J"],
    left: Float[np.ndarray, "Q n"],
) -> None:
    """Add the sites of one channel's rows, at unit noise. Sums are changed in place.

    Args:
        past: The sums.
        outputs: The latent parameters of all channels.
        group: The rows' channel.
        features: φ of each row.
        linear: b of each row.
        precision: P of each row.
        left: The open variance of each latent function at each row.
    """
    _add_linear(past, outputs, group, features, linear)
    _add_precision(past, outputs, group, features, precision, left)


def _add_linear(
    past: Past,
    outputs: Outputs,
    group: Group,
    features: Float[np.ndarray, "S n"],
    linear: Float[np.ndarray, "n J"],
) -> None:
    first = outputs.first[group.channel]
    own = slice(first, first + group.latents)
    for kept, part in zip(past.linear, _slices(past.sizes), strict=True):
        kept[own] += linear.T @ features[part].T


def _add_precision(
    past: Past,
    outputs: Outputs,
    group: Group,
    features: Float[np.ndarray, "S n"],
    precision: Float[np.ndarray, "n J J"],
    left: Float[np.ndarray, "Q n"],
) -> None:
    slices, first = _slices(past.sizes), outputs.first[group.channel]
    pairs = outputs.pairs_of(group.channel)
    for c in range(pairs.start, pairs.stop):
        weight = precision[:, outputs.left[c] - first, outputs.right[c] - first]
        square = (features * weight) @ features.T
        for (q, r), kept in zip(past.parts, past.precision, strict=True):
            kept[c] += square[slices[q], slices[r]]
        past.slack[c] += left @ weight


def _add_counts(past: Past, said: Said, group: Group) -> None:
    """Count and energy: what a common noise needs to be learned beside the sums."""
    count, energy = counted(said.setting.model, group)
    past.count[group.channel] += count
    past.energy[group.channel] += energy


def counted(model: MultiTaskGP, group: Group) -> tuple[float, float]:
    """The count and the energy of the rows of a channel."""
    channel, size = model.channels[group.channel], len(group.y)
    likelihood = channel.likelihood
    if not likelihood.scales_sites:
        return float(size), 0.0
    nothing = np.zeros((size, 1, 1))
    b, p = likelihood.curvature(group.y, nothing[:, 0] + channel.offset, nothing)
    b, p = b[:, 0] / likelihood.strength, p[:, 0, 0] / likelihood.strength
    return float(p.sum()), float((b**2 / np.where(p > 0, p, 1.0)).sum())


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes])
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
