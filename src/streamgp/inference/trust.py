"""Trust: how far the sites of rows can be believed when they are read under other weights.

The site of a row that is not conjugate is the local quadratic of its expected log-density F in the
mean m of q(f). Under other weights f lies elsewhere, and there the quadratic may promise what F does
not keep: an observation of class one that was thought to be impossible has a slope of one and next
to no curvature, so that its quadratic has no top in sight. Learning would follow such a promise to
endless weights. Sites are therefore kept with at least the curvature with which they keep their
promise; their slope at m stays. Sites of weights that cannot change are kept as they are.
"""

import numpy as np
from jaxtyping import Float

from streamgp.inference.e_step import Setting
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites, times
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import Channel, MultiTaskGP, of_groups
from streamgp.parameters import free_size

_FLATTEST = 1e-8  # of slope²: no quadratic is looked at that is flatter than this
_HALVINGS = 60
_ROUNDING = 1e-9


def trusted(wrapped: MultiTaskGP, setting: Setting, rows: RowSites, at_rows: Marginals) -> RowSites:
    """The sites as they are to be kept."""
    batch, model = setting.batch, setting.model
    doubtful = [_is_read_elsewhere(wrapped.channels[group.channel]) for group in batch.groups]
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


def _is_read_elsewhere(channel: Channel) -> bool:
    return not channel.likelihood.conjugate and free_size(channel.weights) > 0


def missing(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    mean: Float[np.ndarray, "n J"],
    covariance: Float[np.ndarray, "n J J"],
    precision: Float[np.ndarray, "n J J"],
) -> Float[np.ndarray, "n J J"]:
    """The curvature that each row's quadratic lacks.

    The step to the top of the quadratic is halved until F gains there what a quadratic of as many
    times the curvature promises.
    """
    here = likelihood.expected(y, mean, covariance)
    slope, identity = here.by_mean, np.eye(mean.shape[1])
    least = _FLATTEST * np.sum(slope**2, axis=1) + 1e-300
    bent = precision + least[:, None, None] * identity
    step = np.linalg.solve(bent, slope[:, :, None])[:, :, 0]
    promised = 0.5 * np.sum(slope * step, axis=1)
    part, short = np.ones(len(mean)), np.arange(len(mean))
    with np.errstate(all="ignore"):
        for _ in range(_HALVINGS):
            there = mean[short] + part[short, None] * step[short]
            gained = likelihood.expected(y[short], there, covariance[short]).value
            kept = gained - here.value[short] >= part[short] * promised[short] - _ROUNDING
            short = short[~kept]
            if not len(short):
                break
            part[short] /= 2
    return np.where((part < 1)[:, None, None], bent / part[:, None, None] - precision, 0.0)
