"""The noise of a lone Gaussian channel, learned as if all past data were still there.

A site made with noise σ₀ is σ₀²/σ² times as strong under noise σ. Were it kept as it was, a first
guess of the noise would be locked in: old data, taken too seriously, would bend the kernel to
explain them. With one conjugate channel of fixed weights the whole dependence is known,

    Σ_past E[log p(y|f)] = s·(λᵀv − ½vᵀΛv) − ½N log σ² − ½E/σ²,   s = σ₀²/σ²,

where E = Σ (y − offset)² + slack is kept beside the site. Several channels share one site, so there
the noise is remembered as an expansion, like everything else (`memory`).
"""

from typing import Any

import numpy as np

from streamgp.data.batch import Batch
from streamgp.inference.memory import Memory
from streamgp.inference.posterior import condition
from streamgp.inference.sites import Site
from streamgp.model.mixing import Features
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_size


def is_exact(model: MultiTaskGP) -> bool:
    """Whether the noise is all that this model can learn of its only channel."""
    if len(model.channels) > 1:
        return False
    channel = model.channels[0]
    likelihood: Any = channel.likelihood
    if not likelihood.conjugate or likelihood.observation_dim > 1:
        return False
    return free_size(channel) == free_size(likelihood.noise) == 1


def strength(old: MultiTaskGP, new: MultiTaskGP) -> float:
    """s: how strong the site of past data is under another noise; models plain."""
    return float((noise_of(old) / noise_of(new)) ** 2)


def past(model: MultiTaskGP, count: float, energy: float) -> float:
    """What past data say of the noise beside their site."""
    variance = noise_of(model) ** 2
    return -0.5 * (count * np.log(variance) + energy / variance)


def past_slope(model: MultiTaskGP, count: float, energy: float) -> float:
    """The derivative of `past` by the noise."""
    sigma = noise_of(model)
    return -count / sigma + energy / sigma**3


def energy(model: MultiTaskGP, batch: Batch, features: Features) -> float:
    """Σ (y − offset)² + slack of a batch."""
    total = 0.0
    for group, slack in zip(batch.groups, features.slack, strict=True):
        likelihood = model.channels[0].likelihood
        offset = features.offset[group.flat, None]
        residual, _ = likelihood.curvature(group.y, offset, slack)
        total += float(np.sum(residual**2)) * noise_of(model) ** 4 + float(np.sum(slack))
    return total


def expanded(model: MultiTaskGP, site: Site, count: float, energy: float) -> Memory:
    """The same knowledge as an expansion in log σ, for when the channel is no longer alone."""
    posterior = condition(site)
    mean, covariance = posterior.mean[0], posterior.covariance[0]
    second = covariance + np.outer(mean, mean)
    at_site = site.linear[0] @ mean - 0.5 * np.sum(site.precision[0] * second)
    residual = energy / noise_of(model) ** 2 - 2 * at_site  # Σ E[(y − f)²] / σ²
    return Memory(np.array([residual - count]), np.array([[2 * residual]]))


def noise_of(model: MultiTaskGP) -> float:
    """The noise of a plain model's first channel."""
    likelihood: Any = model.channels[0].likelihood
    return float(likelihood.noise)
