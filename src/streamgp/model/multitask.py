"""The model of the data: latent functions, how channels mix them, what channels observe."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Group, Rows, sorted_batch
from streamgp.kernels import Kernel
from streamgp.likelihoods import Likelihood
from streamgp.parameters import Module, Parameter
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Channel(Module):
    """One stream of observations: its likelihood and how it mixes the latent functions.

    Latent parameter j is f_j(x) = offset_j + scale_j · Σ_q weights_jq u_q(x).
    """

    likelihood: Likelihood
    weights: Parameter  # (J, Q)
    offset: Parameter  # fixed, (J,)
    scale: Parameter  # fixed, (J,)

    @property
    def loadings(self) -> Float[np.ndarray, "J Q"]:
        """The weights in the units of f; of a plain channel."""
        return self.scale[:, None] * self.weights


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
    covariance: tuple[Float[np.ndarray, "n J J"], ...],
) -> Iterator[tuple[Group, Likelihood, Float[np.ndarray, "n J"], Float[np.ndarray, "n J J"]]]:
    """Each channel's rows with its likelihood and with q(f) at them."""
    for group in batch.groups:
        yield (
            group,
            model.channels[group.channel].likelihood,
            mean[group.flat].reshape(-1, group.latents),
            covariance[group.run][group.within],
        )
