"""The model of the data: latent functions, how channels mix them, what channels observe."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data.batch import Batch, Group, Rows, sorted_batch
from streamgp.kernels import Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.means import Mean
from streamgp.parameters import Module, Parameter
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Channel(Module):
    """One stream of observations: its likelihood and how it mixes the latent functions.

    Latent parameter j is f_j(x) = offset_j + h(x)·β_j + scale_j · Σ_q weights_jq u_q(x), where h
    are the functions of the mean and β_jb ~ N(0, spread_jb²) their weights.
    """

    likelihood: Likelihood
    weights: Parameter  # (J, Q)
    offset: Parameter  # fixed, (J,)
    scale: Parameter  # (J,)
    mean: Mean
    spread: Parameter  # fixed, (J, B)

    @property
    def loadings(self) -> Float[np.ndarray, "J Q"]:
        """The weights in the units of f; of a plain channel."""
        return self.scale[:, None] * self.weights

    def by_loadings(self, by: Float[np.ndarray, "J Q"]) -> dict[str, Any]:
        """A derivative by the loadings as one by weights and scale; of a plain channel."""
        return {"weights": self.scale[:, None] * by, "scale": np.sum(self.weights * by, axis=1)}


class Outputs(NamedTuple):
    """The latent parameters of all channels in a row, and the pairs of one channel's parameters.

    Attributes:
        channel: The channel of each latent parameter.
        first: Where each channel's latent parameters begin.
        pair_channel: The channel of each pair.
        left: The first latent parameter of each pair.
        right: The second, which may be the same but does not come before it.
        apart: Whether the two differ, so that the pair stands for two entries of a matrix.
        entries: How many entries of a matrix each pair stands for: one, or two.
        by_left: Adds up numbers of pairs for their first latent parameter.
        by_right: The same for the second, of pairs whose two differ.
        by_channel: Adds up numbers of latent parameters for their channel.
        pairs_by_channel: Adds up numbers of pairs for their channel.
        within: Of each channel, where its pairs are, and the two of each pair counted from its
            first latent parameter.
    """

    channel: Int[np.ndarray, " O"]
    first: Int[np.ndarray, " D"]
    pair_channel: Int[np.ndarray, " C"]
    left: Int[np.ndarray, " C"]
    right: Int[np.ndarray, " C"]
    apart: Bool[np.ndarray, " C"]
    entries: Float[np.ndarray, " C"]
    by_left: Float[np.ndarray, "O C"]
    by_right: Float[np.ndarray, "O C"]
    by_channel: Float[np.ndarray, "D O"]
    pairs_by_channel: Float[np.ndarray, "D C"]
    within: tuple[tuple[slice, Int[np.ndarray, " c"], Int[np.ndarray, " c"]], ...]

    def pairs_of(self, channel: int) -> slice:
        """Where a channel's pairs are."""
        return self.within[channel][0]


@functools.lru_cache(maxsize=64)
def outputs_of(latents: tuple[int, ...]) -> Outputs:
    """The outputs of channels with so many latent parameters each."""
    channel = np.repeat(np.arange(len(latents)), latents)
    first = np.cumsum([0, *latents[:-1]])
    pairs = [(d, j, k) for d, own in enumerate(latents) for j in range(own) for k in range(j, own)]
    of, j, k = np.array(pairs).T
    left, right, apart = first[of] + j, first[of] + k, j != k
    outputs, channels = np.arange(len(channel))[:, None], np.arange(len(latents))[:, None]
    ends = np.searchsorted(of, np.arange(len(latents) + 1)).tolist()
    own = [slice(begin, end) for begin, end in itertools.pairwise(ends)]
    return Outputs(
        channel,
        first,
        of,
        left,
        right,
        apart,
        entries=1.0 + apart,
        by_left=(outputs == left) * 1.0,
        by_right=((outputs == right) & apart) * 1.0,
        by_channel=(channels == channel) * 1.0,
        pairs_by_channel=(channels == of) * 1.0,
        within=tuple((pairs, j[pairs], k[pairs]) for pairs in own),
    )


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class MultiTaskGP(Module):
    """Q latent functions and D channels. `draws[k]` latent functions share `kernels[k]`.

    Inputs are in the user's units everywhere; kernels see them from `origin`, so that inputs far
    from zero (a year, a timestamp) lose no digits.
    """

    kernels: tuple[Kernel, ...]
    channels: tuple[Channel, ...]
    origin: Parameter  # fixed, (P,)
    draws: tuple[int, ...]

    @property
    def kernel_index(self) -> tuple[int, ...]:
        """The number of the kernel of each of the Q latent functions."""
        return tuple(k for k, count in enumerate(self.draws) for _ in range(count))

    @property
    def latent_kernels(self) -> tuple[Kernel, ...]:
        """The kernel of each of the Q latent functions, on inputs less the origin."""
        return tuple(self.kernels[k] for k in self.kernel_index)

    @property
    def conjugate(self) -> bool:
        """Whether every channel's site is known without iterating."""
        return all(channel.likelihood.conjugate for channel in self.channels)

    @property
    def outputs(self) -> Outputs:
        """The latent parameters of all channels."""
        return outputs_of(tuple(channel.likelihood.latents for channel in self.channels))

    @property
    def basis_size(self) -> int:
        """B, the largest number of mean functions of any channel."""
        return max(channel.mean.size for channel in self.channels)

    def shortest_waves(self, width: int) -> Float[np.ndarray, " P"]:
        """The length of the shortest wave along each of so many input columns, or infinity."""
        of_kernels = [kernel.shortest_waves(width) for kernel in self.kernels]
        of_means = [channel.mean.shortest_waves(width) for channel in self.channels]
        return np.minimum.reduce([*of_kernels, *of_means])

    def basis(self, batch: Batch) -> Float[np.ndarray, "N B"]:
        """The mean functions of each row's channel; zeros where a channel has fewer than others."""
        found = np.zeros((batch.size, self.basis_size))
        for group in batch.groups:
            mean = self.channels[group.channel].mean
            found[group.rows, : mean.size] = mean(batch.x[group.rows])
        return found

    def basis_spreads(self) -> Float[np.ndarray, "O B"]:
        """The prior spread of each latent parameter's weights on them; of a plain model."""
        found = np.zeros((len(self.outputs.channel), self.basis_size))
        for first, channel in zip(self.outputs.first, self.channels, strict=True):
            own = channel.spread
            found[first : first + len(own), : own.shape[1]] = own
        return found

    def batch(self, rows: Rows) -> Batch:
        """Rows of this model's channels, sorted for the algebra."""
        likelihoods = [channel.likelihood for channel in self.channels]
        return sorted_batch(
            rows, [c.latents for c in likelihoods], [c.observation_dim for c in likelihoods]
        )


def of_groups(
    model: MultiTaskGP,
    batch: Batch,
    mean: Float[np.ndarray, " R"],
    covariance: tuple[Float[np.ndarray, "_n _J _J"], ...],
) -> Iterator[tuple[Group, Likelihood, Float[np.ndarray, "n J"], Float[np.ndarray, "n J J"]]]:
    """Each channel's rows with its likelihood and with q(f) at them.

    Those of which nothing is known but a site are left out.
    """
    for group in batch.groups:
        if not group.is_observed:
            continue
        yield (
            group,
            model.channels[group.channel].likelihood,
            mean[group.flat].reshape(-1, group.latents),
            covariance[group.run][group.within],
        )
