"""One observation at a time: low-rank updates of q(v).

At fixed inducing points and hyperparameters an observation moves q(v) along one direction per
latent parameter, so a row costs O(S²), not O(S³). Sites that are known beforehand are folded in by
blocks of rows: the Cholesky factor of what a block is predicted to be has the order of its rows in
it. The others are found row by row. The recursion only serves that order: what each row was
predicted to be, and the site it got. The state they leave behind is the sum of those sites, as if
the rows had come together, so no error of the recursion is carried on.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Rows
from streamgp.inference.channel_memory import Latents
from streamgp.inference.e_step import Setting, e_step, exact_sites, first_sites, no_sites
from streamgp.inference.posterior import Marginals, add
from streamgp.inference.sites import RowSites, Site, aggregate, empty
from streamgp.inference.state import State
from streamgp.likelihoods.quadrature import root
from streamgp.model.mixing import Features, Mixed
from streamgp.numerics.linalg import cholesky, cholesky_of_identity_plus, solve_lower

_BLOCK = 32  # rows: enough for products of matrices, few beside the inducing points


class Filtered(NamedTuple):
    """What became of each row of a batch, taken in order."""

    setting: Setting
    site: Site  # carried and rows together
    rows: RowSites
    before: Marginals  # q(f) of each row before it was learned
    after: Marginals  # and right after
    latents: Latents  # q(u) at each row right after


class _AtRows(NamedTuple):
    """What q(v) says of the latent functions at rows, their open variance apart."""

    mean: Float[np.ndarray, "N Q"]
    covariance: Float[np.ndarray, "N Q Q"]


def filter_rows(state: State, rows: Rows, *, rounds: int, tolerance: float) -> Filtered:
    """Fold the rows in one after the other. For a joint site only."""
    model, batch = state.plain, state.model.batch(rows)
    projection = state.prior.project(batch.x)
    mixed = Mixed.of(model, batch, factorised=False)
    setting = Setting(model, batch, mixed.features(projection), state.site)
    come = np.empty(batch.size, int)  # the sorted place of each row, in the order they came
    come[batch.order] = np.arange(batch.size)
    stacked = _stacked(projection.values)
    if model.conjugate:
        own = exact_sites(setting, no_sites(batch, setting.features))
        before, after = _in_blocks(state, stacked, mixed, own, come)
    else:
        fold = _RowByRow(state, setting, stacked, mixed, rounds, tolerance)
        own, before, after = fold(come)
    covariance = after.covariance + projection.open.T[:, :, None] * np.eye(stacked.shape[2])
    return Filtered(
        setting,
        state.site + aggregate(batch, own, setting.features),
        own,
        _marginals(before, mixed, setting.features),
        _marginals(after, mixed, setting.features),
        Latents(after.mean, covariance),
    )


def _stacked(values: tuple[Float[np.ndarray, "_ N"], ...]) -> Float[np.ndarray, "N S Q"]:
    """u at row n is Gᵀv: the rows' G, with a block per latent function."""
    count, sizes = values[0].shape[1], [len(v) for v in values]
    stacked = np.zeros((count, sum(sizes), len(values)))
    begin = 0
    for q, v in enumerate(values):
        stacked[:, begin : begin + len(v), q] = v.T
        begin += len(v)
    return stacked


def _in_blocks(
    state: State,
    stacked: Float[np.ndarray, "N S Q"],
    mixed: Mixed,
    sites: RowSites,
    come: np.ndarray,
) -> tuple[_AtRows, _AtRows]:
    """What q(v) says before and after each row, whose sites are known."""
    mean, covariance = state.posterior.mean[0], state.posterior.covariance[0]
    count, _, latents = stacked.shape
    weights, linear = mixed.weights[0][:, 0], sites.linear[:, 0]
    precision = sites.precision[0][:, 0, 0]
    before = _AtRows(np.empty((count, latents)), np.empty((count, latents, latents)))
    after = _AtRows(np.empty((count, latents)), np.empty((count, latents, latents)))
    for begin in range(0, count, _BLOCK):
        own = come[begin : begin + _BLOCK]
        part = (stacked[own], weights[own], linear[own], precision[own])
        mean, covariance, found = _fold_block(mean, covariance, *part)
        for place, values in zip((before, after), found, strict=True):
            place.mean[own], place.covariance[own] = values
    return before, after


def _fold_block(
    mean: Float[np.ndarray, " S"],
    covariance: Float[np.ndarray, "S S"],
    stacked: Float[np.ndarray, "B S Q"],
    weights: Float[np.ndarray, "B Q"],
    linear: Float[np.ndarray, " B"],
    precision: Float[np.ndarray, " B"],
) -> tuple[np.ndarray, np.ndarray, tuple[_AtRows, _AtRows]]:
    """A block of B rows: with E the covariance of their f, I + √P E √P = LLᵀ.

    Column k of E√P L⁻ᵀ is what row k says that those before it did not, so that sums over the
    leading columns are what q(v) says before, and after, each row.
    """
    size, dimension, count = stacked.shape
    weight = np.sqrt(precision)
    flat = np.swapaxes(stacked, 0, 1).reshape(dimension, size * count)  # S BQ
    latents = (flat.T @ mean).reshape(size, count)
    reach = covariance @ flat
    between = (flat.T @ reach).reshape(size, count, size, count)
    scaled = weights * weight[:, None]
    towards = np.einsum("sbq,bq->bs", reach.reshape(dimension, size, count), scaled)
    shared = np.einsum("bqcr,cr->cbq", between, scaled)
    explained = np.einsum("cbq,bq->cb", shared, scaled)
    chol = cholesky_of_identity_plus(explained)
    seen = np.where(weight > 0, linear / np.where(weight > 0, weight, 1.0), 0.0)
    surprise = seen - weight * np.sum(weights * latents, axis=1)
    sides = np.concatenate([surprise[:, None], towards, shared.reshape(size, -1)], axis=1)
    news = solve_lower(chol, sides)
    innovation, half = news[:, 0], news[:, 1 : dimension + 1]
    said = news[:, dimension + 1 :].reshape(size, size, count)  # by row k, of row b's functions
    rows = np.arange(size)
    own = between[rows, :, rows, :]
    steps = said * innovation[:, None, None]
    gains = said[:, :, :, None] * said[:, :, None, :]
    mean_sums, gain_sums = np.cumsum(steps, axis=0), np.cumsum(gains, axis=0)
    told, known = mean_sums[rows, rows], gain_sums[rows, rows]
    after = _AtRows(latents + told, own - known)
    before = _AtRows(after.mean - steps[rows, rows], after.covariance + gains[rows, rows])
    return mean + innovation @ half, covariance - half.T @ half, (before, after)


def _marginals(at: _AtRows, mixed: Mixed, features: Features) -> Marginals:
    """q(f) of each row from what is known of the latent functions there."""
    means, explained = np.empty(mixed.batch.flat_size), []
    for run, w in zip(mixed.batch.runs, mixed.weights, strict=True):
        means[run.flat] = np.einsum("njq,nq->nj", w, at.mean[run.rows]).ravel()
        explained.append(w @ at.covariance[run.rows] @ np.swapaxes(w, 1, 2))
    return Marginals(
        features.offset + means,
        add(tuple(explained), features.slack),
        means[:, None],
        tuple(explained),
    )


class _RowByRow:
    """Rows whose sites depend on what is known when they come."""

    def __init__(
        self,
        state: State,
        setting: Setting,
        stacked: Float[np.ndarray, "N S Q"],
        mixed: Mixed,
        rounds: int,
        tolerance: float,
    ):
        self.mean, self.covariance = state.posterior.mean[0], state.posterior.covariance[0].copy()
        self.setting, self.stacked, self.mixed = setting, stacked, mixed
        self.rounds, self.tolerance = rounds, tolerance

    def __call__(self, come: np.ndarray) -> tuple[RowSites, _AtRows, _AtRows]:
        batch, latents = self.setting.batch, self.stacked.shape[2]
        own = no_sites(batch, self.setting.features)
        shape = (batch.size, latents)
        before = _AtRows(np.empty(shape), np.empty((*shape, latents)))
        after = _AtRows(np.empty(shape), np.empty((*shape, latents)))
        for n in come:
            self._fold(n, own, before, after)
        return own, before, after

    def _fold(self, n: int, own: RowSites, before: _AtRows, after: _AtRows) -> None:
        batch = self.setting.batch
        number = next(i for i, run in enumerate(batch.runs) if n < run.rows.stop)
        run = batch.runs[number]
        index = n - run.rows.start
        flat = slice(
            run.flat.start + index * run.latents, run.flat.start + (index + 1) * run.latents
        )
        projection, weights = self.stacked[n], self.mixed.weights[number][index]
        reach = self.covariance @ projection
        mean, spread = self.mean @ projection, projection.T @ reach
        linear, precision = self._site(n, number, index, flat, weights, mean, spread)
        pull, stiffness = _condition(weights, mean, spread, linear, precision)
        towards = reach @ weights.T
        self.mean = self.mean + towards @ pull
        self.covariance -= (towards @ stiffness) @ towards.T
        cross = spread @ weights.T
        own.linear[flat, 0], own.precision[number][index] = linear, precision
        before.mean[n], before.covariance[n] = mean, spread
        after.mean[n] = mean + cross @ pull
        after.covariance[n] = spread - cross @ stiffness @ cross.T

    def _site(
        self,
        n: int,
        number: int,
        index: int,
        flat: slice,
        weights: Float[np.ndarray, "J Q"],
        mean: Float[np.ndarray, " Q"],
        spread: Float[np.ndarray, "Q Q"],
    ) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, "J J"]]:
        """The site of one row, by the E step's rounds on the latent values at that row alone.

        They are all that the row can see of q(v): u = μ + root(C)·ξ, ξ standard normal.
        """
        features = self.setting.features
        centre = weights @ mean
        design = weights @ root(spread[None])[0]
        alone = _alone(self.setting.batch, n)
        slack = features.slack[number][index : index + 1]
        here = Features((design,), (slack,), features.offset[flat] + centre)
        setting = Setting(self.setting.model, alone, here, empty([len(mean)], factorised=False))
        begin = first_sites(setting)
        fit, _ = e_step(setting, begin, rounds=self.rounds, tolerance=self.tolerance)
        precision = fit.rows.precision[0][0]
        return fit.rows.linear[:, 0] + precision @ centre, precision  # about the offset again


def _alone(batch: Batch, n: int) -> Batch:
    """One row of a batch as a batch."""
    group = next(g for g in batch.groups if n < g.rows.stop)
    own = slice(n - group.rows.start, n - group.rows.start + 1)
    one = group._replace(rows=slice(0, 1), flat=slice(0, group.latents), y=group.y[own])
    run = batch.runs[0]._replace(latents=group.latents, rows=one.rows, flat=one.flat)
    where = slice(n, n + 1)
    return Batch(batch.x[where], batch.channel[where], (one,), (run,), np.zeros(1, int))


def _condition(
    weights: Float[np.ndarray, "J Q"],
    mean: Float[np.ndarray, " Q"],
    spread: Float[np.ndarray, "Q Q"],
    linear: Float[np.ndarray, " J"],
    precision: Float[np.ndarray, "J J"],
) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, "J J"]]:
    """(I + PE)⁻¹(b − Pm) and P(I + EP)⁻¹: how a row's site moves mean and covariance."""
    explained = weights @ spread @ weights.T
    residual = linear - precision @ (weights @ mean)
    if len(residual) == 1:
        shrink = 1.0 / (1.0 + precision * explained)
        return shrink[0] * residual, shrink * precision
    half = root(precision[None])[0]
    chol = cholesky(np.eye(len(residual)) + half.T @ explained @ half)
    half = solve_lower(chol, half.T)
    stiffness = half.T @ half
    return residual - stiffness @ (explained @ residual), stiffness
