"""The model of the data: latent functions, how channels mix them, what channels observe."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

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
        pairs: How many pairs there are.
        within: Of each channel, where its pairs are, and the two of each pair, of which the second
            may be the same but does not come before the first.
    """

    channel: Int[np.ndarray, " O"]
    first: Int[np.ndarray, " D"]
    pairs: int
    within: tuple[tuple[slice, Int[np.ndarray, " c"], Int[np.ndarray, " c"]], ...]


@functools.lru_cache(maxsize=64)
def outputs_of(latents: tuple[int, ...]) -> Outputs:
    """The outputs of channels with so many latent parameters each."""
    channel = np.repeat(np.arange(len(latents)), latents)
    first = np.cumsum([0, *latents[:-1]])
    within, begin = [], 0
    for own in latents:
        j, k = np.triu_indices(own)
        within.append((slice(begin, begin + len(j)), j, k))
        begin += len(j)
    return Outputs(channel, first, begin, tuple(within))


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
