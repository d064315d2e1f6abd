"""Derivatives of what rows say, and gradients that are nested as models are."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Group
from streamgp.inference.bounds import of_all
from streamgp.inference.e_step import counted
from streamgp.inference.sites import RunBlocks
from streamgp.likelihoods import Likelihood
from streamgp.likelihoods.algebra import each
from streamgp.model.multitask import MultiTaskGP, of_groups


class ByRows(NamedTuple):
    """Derivatives of Σ E[log p(y|f)]: by the mean and covariance of f, and by parameters."""

    value: Float[np.ndarray, " N"]  # of each row
    by_mean: Float[np.ndarray, " R"]
    by_covariance: RunBlocks
    by_likelihood: dict[int, dict[str, Any]]  # by channel, then by field


def expected_adjoint(
    model: MultiTaskGP,
    batch: Batch,
    mean: Float[np.ndarray, " R"],
    covariance: RunBlocks,
    *,
    parameters: bool = True,
) -> ByRows:
    """Σ E_q[log p(y|f)] and its derivatives; by likelihood parameters if asked for."""
    value, by_mean = np.zeros(batch.size), np.zeros(batch.flat_size)
    by_covariance = tuple(np.zeros_like(c) for c in covariance)
    by_likelihood = {}
    for group, likelihood, m, c in of_groups(model, batch, mean, covariance):
        expected = likelihood.expected(group.y, m, c)
        value[group.rows] = of_all(batch, group, likelihood, expected.value)
        own = counted(batch, group, expected.by_mean, expected.by_covariance)
        by_mean[group.flat], by_covariance[group.run][group.within] = own[0].ravel(), own[1]
        if parameters:
            by_likelihood[group.channel] = _by_parameters(likelihood, batch, group, m, c)
    return ByRows(value, by_mean, by_covariance, by_likelihood)


def _by_parameters(
    likelihood: Likelihood,
    batch: Batch,
    group: Group,
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
) -> dict[str, Any]:
    """Derivatives by the parameters of a likelihood, of rows that stand for several each."""
    if batch.count is None or batch.energy is None:
        return likelihood.expected_parameter_gradient(group.y, mean, covariance)
    count = batch.count[group.rows]
    rows = likelihood.expected_parameter_rows(group.y, mean, covariance)
    found = each(lambda own: np.tensordot(count, own, 1), rows)
    scatter = -0.5 * likelihood.strength * float(np.sum(batch.energy[group.rows]))
    return summed(found, likelihood.strength_gradient(scatter))


def by_kernels(model: MultiTaskGP, by_latents: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Derivatives by each kernel: those of the latent functions that share it, added."""
    sums: list[dict[str, Any]] = [{} for _ in model.kernels]
    for k, gradient in zip(model.kernel_index, by_latents, strict=True):
        sums[k] = summed(sums[k], gradient)
    return tuple(sums)


def summed(a: Any, b: Any) -> Any:
    """Two nested gradients added up; what one leaves out is zero."""
    if a is None or (isinstance(a, dict) and not a):
        return b
    if b is None or (isinstance(b, dict) and not b):
        return a
    if isinstance(a, dict):
        return {name: summed(a.get(name), b.get(name)) for name in {**a, **b}}
    if isinstance(a, tuple):
        return tuple(map(summed, a, b))
    return a + b


def by_channels(
    model: MultiTaskGP,
    by_loadings: Float[np.ndarray, "O Q"],
    by_log_strength: Float[np.ndarray, " D"],
) -> list[dict[str, Any]]:
    """Derivatives by the parameters of each channel of a plain model.

    Args:
        model: The model.
        by_loadings: By the loading of each latent parameter.
        by_log_strength: By the logarithm of the factor that each channel's noise gives its sites.
    """
    found = []
    for d, channel in enumerate(model.channels):
        first = model.outputs.first[d]
        loadings = by_loadings[first : first + channel.likelihood.latents]
        noise = channel.likelihood.strength_gradient(float(by_log_strength[d]))
        found.append({"likelihood": noise, **channel.by_loadings(loadings)})
    return found
