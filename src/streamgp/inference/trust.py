"""Trust: how far sites of rows can be believed when they are read under other hyperparameters.

The site of a row that is not conjugate is the local quadratic of its expected log-density F in the
mean m of q(f). Under other kernels or weights f lies elsewhere, and there the quadratic may promise
what F does not keep. An observation of class one that was thought to be impossible, or an outlier
of Student's t, has a slope and next to no curvature, so that its quadratic has no top in sight.
Learning would follow such a promise to endless weights and variances. Sites are therefore kept
with at least the curvature with which their promise can be believed; their slope at m stays. Where
weights are learned, a site may promise what F keeps. Where only kernels are, it may promise four
times that, so that ordinary rows stay as they are. Where neither are, all rows do.
"""

import numpy as np
from jaxtyping import Float

from streamgp.inference.e_step import Setting
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, times
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.parameters import free_size

_FLATTEST = 1e-8  # of slope²: no quadratic is looked at that is flatter than this
_HALVINGS = 60
_LEAST = 1e-12  # nats: a smaller top does not matter
UNDER_KERNELS = 4.0  # times what it keeps, what a site may promise where weights stay


def trusted(
    wrapped: MultiTaskGP,
    setting: Setting,
    rows: RowSites,
    at_rows: Marginals,
    most: float = UNDER_KERNELS,
) -> RowSites:
    """The sites as they are to be kept; with `most` = 1, as an M step is to read them."""
    batch, model = setting.batch, setting.model
    allowed = [exaggeration(wrapped, group.channel, most) for group in batch.groups]
    if np.isinf(allowed).all():
        return rows
    more = tuple(np.zeros_like(p) for p in rows.precision)
    groups = of_groups(model, batch, at_rows.mean, at_rows.covariance)
    for (group, likelihood, mean, covariance), limit in zip(groups, allowed, strict=True):
        if np.isfinite(limit):
            own = rows.precision[group.run][group.within]
            lacking = missing(likelihood, group.y, mean, covariance, own, limit)
            more[group.run][group.within] = lacking
    linear = rows.linear + times(batch, more, at_rows.centred)
    return RowSites(linear, tuple(p + m for p, m in zip(rows.precision, more, strict=True)))


def exaggeration(wrapped: MultiTaskGP, channel: int, most: float = UNDER_KERNELS) -> float:
    """How many times what it keeps a site of a channel may promise; `most` where weights stay.

    There is no limit where sites are exact, or read only under the kernels and weights that they
    were found under.
    """
    own = wrapped.channels[channel]
    if own.likelihood.conjugate:
        return np.inf
    if free_size(own.weights):
        return 1.0
    return most if free_size(wrapped.kernels) else np.inf


def missing(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
    precision: Float[np.ndarray, "n J J"],
    most: float = 1.0,
) -> Float[np.ndarray, "n J J"]:
    """The curvature that each row's quadratic lacks.

    On the way d = P⁻¹g to the top of the quadratic, F gains at most some G / `most`.
    P + (1/2G − 1/gᵀd)·ggᵀ has a top of height G: it bends along the slope g only.
    """
    here = likelihood.expected(y, mean, covariance)
    slope = here.by_mean
    least = _FLATTEST * np.sum(slope**2, axis=1) + 1e-300
    bent = precision + least[:, None, None] * np.eye(mean.shape[1])
    step = np.linalg.solve(bent, slope[:, :, None])[:, :, 0]
    height = 0.5 * np.sum(slope * step, axis=1)
    gain = most * _largest_gain(likelihood, y, mean, covariance, step, here.value)
    lacking = 1 / np.maximum(gain, _LEAST) - 1 / np.maximum(height, _LEAST)
    return 0.5 * np.maximum(lacking, 0.0)[:, None, None] * slope[:, :, None] * slope[:, None, :]


def _largest_gain(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
    step: Float[np.ndarray, "n J"],
    here: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """How much F gains at most along a step, among the step and its halves, quarters …"""
    best, part, open_ = np.zeros(len(mean)), 1.0, np.arange(len(mean))
    with np.errstate(all="ignore"):
        for _ in range(_HALVINGS):
            there = mean[open_] + part * step[open_]
            gain = likelihood.expected(y[open_], there, covariance[open_]).value - here[open_]
            gain = np.where(np.isfinite(gain), gain, -np.inf)
            rises = ~((gain <= best[open_]) & (best[open_] > 0))
            best[open_] = np.maximum(best[open_], gain)
            open_ = open_[rises]
            if not len(open_):
                break
            part /= 2
    return best
