"""Composition: which components the latent parameters of a channel are the sum of.

f_j(x) = level_j + Σ_b h_b(x)·β_jb + Σ_q w_jq Σ_p g_qp(x): the functions of the mean, by name, and
the parts g_qp of each latent function u_q, of which there are several if its kernel is a sum.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from streamgp.data.axes import Axis
from streamgp.kernels import Kernel
from streamgp.model.means.constant import LEVEL
from streamgp.model.multitask import MultiTaskGP


@dataclasses.dataclass(frozen=True)
class Composition:
    """The components of a channel.

    Attributes:
        channel: Its number.
        basis: The name of each of its mean functions.
        parts: The name of each part of the latent functions, one function after the other.
        summands: The kernel of each of these parts.
        latent: The latent function that each of these parts belongs to.
    """

    channel: int
    basis: tuple[str, ...]
    parts: tuple[str, ...]
    summands: tuple[Kernel, ...]
    latent: tuple[int, ...]

    @classmethod
    def of(cls, model: MultiTaskGP, channel: int, axes: Sequence[Axis]) -> "Composition":
        """The components of a channel of a plain model."""
        names: list[str] = []
        summands: list[Kernel] = []
        latent: list[int] = []
        for q, kernel in enumerate(model.latent_kernels):
            own = kernel.summands()
            names += list(_part_names(q, own))
            summands += own
            latent += [q] * len(own)
        basis = model.channels[channel].mean.labels(axes)
        return cls(channel, basis, tuple(names), tuple(summands), tuple(latent))

    @property
    def of_mean(self) -> tuple[str, ...]:
        """The components of the mean. The level is always there: it holds the offset."""
        return tuple(dict.fromkeys((LEVEL, *self.basis)))

    @property
    def names(self) -> tuple[str, ...]:
        """All components: those of the mean, then the parts of the latent functions."""
        return (*self.of_mean, *self.parts)

    @property
    def size(self) -> int:
        """How many components there are."""
        return len(self.names)


def _part_names(q: int, summands: Sequence[Kernel]) -> Iterator[str]:
    """Names of a latent function's parts, each of them once."""
    if len(summands) == 1:
        yield f"latent {q}"
        return
    labels = [kernel.label() for kernel in summands]
    counts = {label: itertools.count(1) for label in labels}
    for label in labels:
        number = next(counts[label])
        yield f"latent {q}: {label}" + (f" ({number})" if labels.count(label) > 1 else "")
