"""What a batch says of its channels, for later, that the past cannot be read for.

Two things. The parameters of likelihoods, other than noise that is a common factor of the sites:
their part of the expected log-density is expanded. And how far the sites of rows that are not
conjugate can be trusted: a site is the local quadratic of a row's log-density. Read under other
weights, far from where it was made, it may promise what no log-density keeps (a row of class one
that was thought to be impossible has a slope of one and next to no curvature). Weights that would
lead there are held back by as much curvature as makes the promise true.
"""

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Group
from streamgp.inference import memory
from streamgp.inference.e_step import Setting
from streamgp.inference.memory import Memory, Vector
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import Channel, MultiTaskGP, of_groups
from streamgp.numerics.linalg import positive_part
from streamgp.parameters import free_gradient, free_size, free_vector, unwrap, with_free

_FLATTEST = 1e-8  # a quadratic whose top is higher than slope² over twice this is cut at once
_HALVINGS = 60


def needs_memory(wrapped: MultiTaskGP) -> bool:
    """Whether rows say anything of the channels that has to be remembered."""
    return any(
        _has_own(channel.likelihood) or _is_trusted_nearby(channel) for channel in wrapped.channels
    )


def _has_own(wrapped: Likelihood) -> bool:
    return not wrapped.scales_sites and free_size(wrapped) > 0


def _is_trusted_nearby(channel: Channel) -> bool:
    return not channel.likelihood.conjugate and free_size(channel.weights) > 0


def expand_channels(
    wrapped: MultiTaskGP,
    setting: Setting,
    rows: RowSites,
    at_rows: Marginals,
    latents: Float[np.ndarray, "N Q"],
    variances: Float[np.ndarray, "Q N"],
) -> Memory:
    """What a batch says of the parameters of the channels.

    Args:
        wrapped: The hyperparameters.
        setting: The batch under them.
        rows: The sites of the rows.
        at_rows: q(f) at the rows.
        latents: E_q[u] of each latent function at the rows.
        variances: The prior variances of the latent functions at the rows.
    """
    said = [memory.blank(channel) for channel in wrapped.channels]
    model, batch = setting.model, setting.batch
    for group, likelihood, mean, covariance in of_groups(
        model, batch, at_rows.mean, at_rows.covariance
    ):
        channel, plain = wrapped.channels[group.channel], model.channels[group.channel]
        own = memory.blank(channel.likelihood)
        if _has_own(channel.likelihood):
            own = _of_likelihood(channel.likelihood, group, mean, covariance)
        rest = memory.blank((channel.weights, channel.scale))
        if _is_trusted_nearby(channel):
            precision = rows.precision[group.run][group.within]
            more = doubts(likelihood, group.y, mean, precision)
            second = latents[group.rows, :, None] * latents[group.rows, None, :]
            second += variances.T[group.rows, :, None] * np.eye(latents.shape[1])
            rest = _of_weights(channel, plain, np.einsum("njk,nqr->jkqr", more, second))
        said[group.channel] = memory.joined(own, rest)
    return memory.joined(*said)


def _of_likelihood(
    wrapped: Likelihood,
    group: Group,
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
) -> Memory:
    """The expansion in the likelihood's own parameters."""

    def gradient(theta: Vector) -> Vector:
        there = with_free(wrapped, theta)
        by = unwrap(there).expected_parameter_gradient(group.y, mean, covariance)
        return free_gradient(there, by)

    here, hessian = memory.expand(gradient, free_vector(wrapped), central=True)
    return Memory(here, positive_part(-hessian))


def doubts(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    mean: Float[np.ndarray, "n J"],
    precision: Float[np.ndarray, "n J J"],
) -> Float[np.ndarray, "n J J"]:
    """How much more curvature each row's quadratic needs to keep what it promises.

    The step to the top of the quadratic is halved until the log-density gains what a quadratic of
    as much more curvature has there.
    """
    slope, _ = likelihood.derivatives(y, mean)
    least = _FLATTEST * np.sum(slope**2, axis=1)[:, None, None] * np.eye(mean.shape[1])
    bent = precision + least + 1e-300 * np.eye(mean.shape[1])
    step = np.linalg.solve(bent, slope[:, :, None])[:, :, 0]
    promised = 0.5 * np.sum(slope * step, axis=1)
    here, part = likelihood.log_density(y, mean), np.ones(len(mean))
    with np.errstate(all="ignore"):
        for _ in range(_HALVINGS):
            gained = likelihood.log_density(y, mean + part[:, None] * step) - here
            short = ~(gained >= part * promised - 1e-9)
            if not short.any():
                break
            part[short] /= 2
    return bent / part[:, None, None] - precision


def _of_weights(
    channel: Channel, plain: Channel, curvature: Float[np.ndarray, "J J Q Q"]
) -> Memory:
    """A pull of weights and scale towards what they are.

    f_j = scale_j Σ_q w_jq u_q has the derivatives scale_j u_q by w_jq and ℓ_j·u by log scale_j.
    """
    count, latents = plain.weights.shape
    jacobian = np.zeros((count, count * latents + count, latents))
    for j in range(count):
        jacobian[j, j * latents : (j + 1) * latents] = plain.scale[j] * np.eye(latents)
        jacobian[j, count * latents + j] = plain.loadings[j]
    precision = np.einsum("jaq,jkqr,kbr->ab", jacobian, curvature, jacobian)
    free = [np.ones(count * latents, bool), np.full(count, free_size(channel.scale) > 0)]
    kept = np.concatenate(free)
    return Memory(np.zeros(np.sum(kept)), positive_part(precision[np.ix_(kept, kept)]))
