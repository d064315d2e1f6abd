"""The noise of a lone Gaussian channel, learned as if all past data were still there.

A site made with noise σ₀ is σ₀²/σ² times as strong under noise σ. Were it kept as it was, a first
guess of the noise would be locked in: old data, taken too seriously, would bend the kernel to
explain them. With one conjugate channel of fixed weights the whole dependence is known,

    Σ_past E[log p(y|f)] = s·(λᵀv − ½vᵀΛv) − ½N log σ² − ½E/σ²,   s = σ₀²/σ²,

where E = Σ (y − offset)² + slack is kept beside the site. Several channels share one site, so there
the noise is remembered as an expansion, like everything else (`memory`).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from streamgp.data import Batch
from streamgp.inference.conditioning import condition
from streamgp.inference.memory import Memory
from streamgp.inference.sites import Site
from streamgp.model.mixing import Features
from streamgp.model.multitask import Generative
from streamgp.parameters import split


def is_exact(model: Generative) -> bool:
    """Whether the noise is all that this model can learn of its only channel."""
    if len(model.channels) > 1 or not model.channels[0].likelihood.conjugate:
        return False
    channel = model.channels[0]
    noise = getattr(channel.likelihood, "noise", None)
    learned = jax.tree.leaves(split(channel)[0])
    return len(learned) == len(jax.tree.leaves(split(noise)[0])) == 1


def rescaled(site: Site, old: Generative, new: Generative) -> Site:
    """The site of past data under another noise; models unwrapped."""
    share = (_noise(old) / _noise(new)) ** 2
    return jax.tree.map(lambda leaf: share * leaf, site)


def past(model: Generative, count: Float[Array, ""], energy: Float[Array, ""]) -> Float[Array, ""]:
    """What past data say of the noise beside their site."""
    variance = _noise(model) ** 2
    return -0.5 * (count * jnp.log(variance) + energy / variance)


def energy(model: Generative, batch: Batch, features: Features) -> Float[Array, ""]:
    """Σ (y − offset)² + slack of a batch."""
    gradient, _ = model.curvature(batch, features.offset, features.slack)
    squares = jnp.sum(gradient**2) * _noise(model) ** 4
    return squares + jnp.sum(jnp.where(batch.mask, features.slack[:, 0, 0], 0.0))


def expanded(
    model: Generative, site: Site, count: Float[Array, ""], energy: Float[Array, ""]
) -> Memory:
    """The same knowledge as an expansion in log σ, for when the channel is no longer alone."""
    posterior = condition(site)
    mean, covariance = posterior.mean[0], posterior.covariance()[0]
    second = covariance + jnp.outer(mean, mean)
    at_site = site.linear[0] @ mean - 0.5 * jnp.sum(site.precision[0] * second)
    residual = energy / _noise(model) ** 2 - 2 * at_site  # Σ E[(y − f)²] / σ²
    return Memory((residual - count)[None], 2 * residual[None, None])


def _noise(model: Generative) -> Float[Array, ""]:
    likelihood: Any = model.channels[0].likelihood
    return likelihood.noise
