"""What a batch says of its likelihoods' parameters, for later.

Noise that is a common factor of the sites is not among them: the past can be read under any such
noise (`reading`).
"""

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Group
from streamgp.inference import memory
from streamgp.inference.e_step import Setting
from streamgp.inference.memory import Memory, Vector
from streamgp.inference.posterior import Marginals
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.numerics.linalg import positive_part
from streamgp.parameters import free_gradient, free_size, free_vector, unwrap, with_free


def needs_memory(wrapped: MultiTaskGP) -> bool:
    """Whether there is a likelihood parameter to be remembered."""
    return any(map(is_remembered, (channel.likelihood for channel in wrapped.channels)))


def is_remembered(wrapped: Likelihood) -> bool:
    """Whether it has parameters of which sums of sites do not tell."""
    return not wrapped.scales_sites and free_size(wrapped) > 0


def expand_likelihoods(wrapped: MultiTaskGP, setting: Setting, at_rows: Marginals) -> Memory:
    """The expansion of a batch's expected log-density in the parameters of the channels."""
    said = [memory.blank(channel) for channel in wrapped.channels]
    model, batch = setting.model, setting.batch
    for group, _, mean, covariance in of_groups(model, batch, at_rows.mean, at_rows.covariance):
        channel = wrapped.channels[group.channel]
        likelihood = channel.likelihood
        if is_remembered(likelihood):
            own = _expanded(likelihood, group, mean, covariance)
            rest = memory.blank((channel.weights, channel.scale))
            said[group.channel] = memory.joined(own, rest)
    return memory.joined(*said)


def _expanded(
    wrapped: Likelihood,
    group: Group,
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
) -> Memory:
    def gradient(theta: Vector) -> Vector:
        there = with_free(wrapped, theta)
        by = unwrap(there).expected_parameter_gradient(group.y, mean, covariance)
        return free_gradient(there, by)

    here, hessian = memory.expand(gradient, free_vector(wrapped), central=True)
    return Memory(here, positive_part(-hessian))
