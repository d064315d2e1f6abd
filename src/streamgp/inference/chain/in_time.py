"""Conjugate samples in the order of time, many at once.

Such samples at the end of a chain are what a Kalman filter is made for. Here all of them are folded
in together, which tells what is known before each interval, and what is known before each sample
follows within its interval: the first samples of all intervals are taken at once, then the second
ones, and so on.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Rows
from streamgp.inference.chain.elements import Forward, Gains, taken
from streamgp.inference.chain.innovations import before_pairs
from streamgp.inference.chain.setting import ChainSetting
from streamgp.inference.chain.state import ChainState
from streamgp.inference.chain.stretch import Pairs
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites


def are_in_time(state: ChainState, rows: Rows) -> bool:
    """Whether samples come in the order of time, with one latent parameter each."""
    channels = state.plain.channels
    simple = all(channel.likelihood.latents == 1 for channel in channels)
    return simple and bool(np.all(np.diff(rows.x[:, 0]) >= 0))


def before_each(
    setting: ChainSetting, sites: RowSites, forward: Forward, order: Int[np.ndarray, " N"]
) -> Marginals:
    """q(f) of each row before it was learned.

    Args:
        setting: The rows that meet a chain, with no data in their intervals nor after them.
        sites: Their sites.
        forward: What is known at each state of the window once they are folded in.
        order: The rows in the order in which they came.
    """
    pairs = _before_intervals(setting, forward)
    samples = _Samples(
        setting.seen.design[order],
        setting.seen.basis[order],
        sites.linear[order, 0],
        np.concatenate([np.ravel(own) for own in sites.precision])[order],
    )
    interval = np.searchsorted(setting.where.where, setting.place[order])
    by_g, spread = _within_intervals(pairs, samples, interval)
    mean, variance = _with_weights(setting.known.gains, samples, by_g, spread)
    explained, block_means = np.empty(len(order)), np.empty(len(order))
    explained[order], block_means[order] = variance, mean
    features = setting.features
    whole = (explained[:, None, None],)
    return Marginals(
        mean=features.offset + block_means,
        covariance=(whole[0] + features.slack[0],),
        block_means=block_means[:, None],
        explained=whole,
    )


class _Samples(NamedTuple):
    """Samples in the order in which they came: what they see, and their sites."""

    design: Float[np.ndarray, "N dd"]
    basis: Float[np.ndarray, "N K"]
    linear: Float[np.ndarray, " N"]
    precision: Float[np.ndarray, " N"]


def _before_intervals(setting: ChainSetting, forward: Forward) -> Pairs:
    """The states of each interval with rows, from all rows of earlier intervals."""
    where = setting.where.where
    moves = taken(setting.base.moves, where - setting.first)
    return Pairs(*before_pairs(taken(forward, where), moves))


def _within_intervals(
    pairs: Pairs, samples: _Samples, interval: Int[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "N k"], Float[np.ndarray, " N"]]:
    """Mean, as a function of g, and variance of each sample's f before it."""
    mean, covariance = pairs.mean.copy(), pairs.covariance.copy()
    begin = np.flatnonzero(np.concatenate([[True], interval[1:] != interval[:-1]]))
    count = np.diff(np.append(begin, len(interval)))
    by_g, spread = np.empty((len(interval), mean.shape[2])), np.empty(len(interval))
    for turn in range(int(count.max())):
        busy = np.flatnonzero(count > turn)
        rows = begin[busy] + turn
        design, k = samples.design[rows], interval[rows]
        reach = np.einsum("nij,nj->ni", covariance[k], design)
        own = np.einsum("ni,nik->nk", design, mean[k])
        own[:, 1:] += samples.basis[rows]
        variance = np.einsum("ni,ni->n", design, reach)
        by_g[rows], spread[rows] = own, variance
        if turn + 1 == count.max():
            break
        gain = 1.0 / (1.0 + samples.precision[rows] * variance)
        pull = -samples.precision[rows][:, None] * own
        pull[:, 0] += samples.linear[rows]
        mean[k] += reach[:, :, None] * (gain[:, None] * pull)[:, None, :]
        part = (samples.precision[rows] * gain)[:, None, None]
        covariance[k] -= part * reach[:, :, None] * reach[:, None, :]
    return by_g, spread


def _with_weights(
    gains: Gains, samples: _Samples, by_g: Float[np.ndarray, "N k"], spread: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Mean and variance with β integrated out, as it is known before each sample."""
    of_beta = by_g[:, 1:]
    if not of_beta.shape[1]:
        return by_g[:, 0], spread
    gain = 1.0 / (1.0 + samples.precision * spread)
    told = -(samples.precision * gain)[:, None, None] * by_g[:, :, None] * by_g[:, None, :]
    toward = (samples.linear * gain)[:, None] * by_g
    told[:, :, 0] += toward
    told[:, 0] += toward
    gram = gains.gram + np.cumsum(told, axis=0) - told  # before each sample
    precision = np.eye(of_beta.shape[1]) - gram[:, 1:, 1:]
    sides = np.stack([gram[:, 1:, 0], of_beta], axis=2)
    solved = np.linalg.solve(precision, sides)
    mean = by_g[:, 0] + np.einsum("nk,nk->n", of_beta, solved[:, :, 0])
    return mean, spread + np.einsum("nk,nk->n", of_beta, solved[:, :, 1])
