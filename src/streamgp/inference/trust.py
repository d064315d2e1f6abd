"""Trust: how far sites of rows can be believed when they are read under other hyperparameters.

The site of a row that is not conjugate is the local quadratic of its expected log-density F in the
mean m of q(f). Under other kernels or weights f lies elsewhere, and there the quadratic may promise
what F does not keep. An observation of class one that was thought to be impossible, or an outlier
of Student's t, has a slope and next to no curvature, so that its quadratic has no top in sight.
Learning would follow such a promise to endless weights and variances. Sites are therefore kept with
at least the curvature with which they keep their promise; their slope at m stays. Sites of kernels
and weights that cannot change stay as they are.
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


def trusted(wrapped: MultiTaskGP, setting: Setting, rows: RowSites, at_rows: Marginals) -> RowSites:
    """The sites as they are to be kept."""
    batch, model = setting.batch, setting.model
    doubtful = [is_read_elsewhere(wrapped, group.channel) for group in batch.groups]
    if not any(doubtful):
        return rows
    more = tuple(np.zeros_like(p) for p in rows.precision)
    groups = of_groups(model, batch, at_rows.mean, at_rows.covariance)
    for (group, likelihood, mean, covariance), is_doubtful in zip(groups, doubtful, strict=True):
        if is_doubtful:
            own = rows.precision[group.run][group.within]
            more[group.run][group.within] = missing(likelihood, group.y, mean, covariance, own)
    linear = rows.linear + np.stack(
        [times(batch, more, mean) for mean in at_rows.block_means.T], axis=1
    )
    return RowSites(linear, tuple(p + m for p, m in zip(rows.precision, more, strict=True)))


def is_read_elsewhere(wrapped: MultiTaskGP, channel: int) -> bool:
    """Whether sites of a channel may come to be read under other kernels or weights, inexactly."""
    own = wrapped.channels[channel]
    return not own.likelihood.conjugate and free_size((wrapped.kernels, own.weights)) > 0


def missing(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
    precision: Float[np.ndarray, "n J J"],
) -> Float[np.ndarray, "n J J"]:
    """The curvature that each row's quadratic lacks.

    On the way d = P⁻¹g to the top of the quadratic, F gains G at most. P + (1/2G − 1/gᵀd)·ggᵀ has
    a top of that height: it bends along the slope g only.
    """
    here = likelihood.expected(y, mean, covariance)
    slope = here.by_mean
    least = _FLATTEST * np.sum(slope**2, axis=1) + 1e-300
    bent = precision + least[:, None, None] * np.eye(mean.shape[1])
    step = np.linalg.solve(bent, slope[:, :, None])[:, :, 0]
    height = 0.5 * np.sum(slope * step, axis=1)
    gain = _largest_gain(likelihood, y, mean, covariance, step, here.value)
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
