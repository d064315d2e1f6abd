"""Logarithms of shares that add up to one, and their averages."""

import numpy as np
from jaxtyping import Float

from streamgp.likelihoods import quadrature


def log_total(f: Float[np.ndarray, "*#b J"]) -> Float[np.ndarray, "*#b"]:
    """log Σ_j exp(f_j)."""
    return both(f)[0]


def shares(f: Float[np.ndarray, "*#b J"]) -> Float[np.ndarray, "*#b J"]:
    """softmax(f)."""
    return both(f)[1]


def both(
    f: Float[np.ndarray, "*#b J"],
) -> tuple[Float[np.ndarray, "*#b"], Float[np.ndarray, "*#b J"]]:
    """log Σ_j exp(f_j) and softmax(f), which share an exponential."""
    top = np.max(f, axis=-1, keepdims=True)
    raised = np.exp(f - top)
    total = np.sum(raised, axis=-1, keepdims=True)
    return (np.log(total) + top)[..., 0], raised / total


def bend(p: Float[np.ndarray, "*#b J"]) -> Float[np.ndarray, "*#b J J"]:
    """diag(π) − ππᵀ, the Hessian of `log_total`."""
    return p[..., None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]


def average_bend(
    weights: Float[np.ndarray, " K"], p: Float[np.ndarray, "K N J"]
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """Averages of π and of diag(π) − ππᵀ over nodes."""
    average = quadrature.average(weights, p)
    second = np.transpose(p, (1, 2, 0)) * weights @ np.swapaxes(p, 0, 1)
    return average, average[..., None] * np.eye(p.shape[-1]) - second
