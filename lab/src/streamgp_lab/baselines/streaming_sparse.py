"""Streaming sparse GPs (Bui, Nguyen and Turner, 2017), for one channel of any likelihood.

The method keeps a Gaussian over the inducing values `a` of the past. A new batch gets its own
inducing points `b`: some of the old ones and some of its inputs, moved by gradient together with
the hyperparameters. The past enters through the KL divergence at the old points. For q(b) that is
the site of `a`, seen through p(a | b, ψ_new), minus a term for the variance that `b` leaves open:

    L = E_q[log p(y|f)] − KL[q(b)‖p(b)] + E_q[log t(a)],  E_q[log t(a)] ∋ −½ tr Λ_a (K_aa − Q_aa)

For Gaussian noise this is the collapsed bound of their Eq. 9. Otherwise q(b) is found by natural
gradients instead of plain ones, which reach the same optimum of the same bound sooner.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import (
    ByBlock,
    adjoint,
    by_kernels,
    gram_adjoints,
    summed,
)
from streamgp.inference.e_step import DenseSetting, Fit, e_step, first_sites
from streamgp.inference.learner import unobserved
from streamgp.inference.m_step import maximise
from streamgp.inference.posterior import Posterior, condition, marginals
from streamgp.inference.prior import Prior
from streamgp.inference.sites import RowSites, Site, through
from streamgp.kernels import RBF, Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.mixing import Mixed, Projection
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.model.specification import Specification
from streamgp.numerics.linalg import NUGGET, solve_lower, with_nugget
from streamgp.parameters import free_gradient, free_vector, unwrap, with_free
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import (
    SampleScores,
    learned,
    literal_model,
    one_by_one,
    position,
    prediction,
)
from streamgp_lab.baselines.gradients import by_channels, log_prior
from streamgp_lab.problem import Data, rows

_E_ROUNDS, _E_TOLERANCE = 50, 1e-4


class StreamingSparse:
    """A streaming sparse GP.

    Args:
        likelihood: Of the only channel.
        kernel: Of its function.
        points: The number of inducing points at the t-th update, counted from one.
        rounds: The number of alternations between q and all other parameters per update. Gaussian
            noise needs only one.
        evaluations: The number of evaluations of the bound in each round.
        name: Of the channel.
        seed: Of the choice of inducing points.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        kernel: Kernel | None = None,
        *,
        points: Callable[[int], int],
        rounds: int = 5,
        evaluations: int = 60,
        name: str = "y",
        seed: int = 0,
    ):
        self._specification = Specification({name: likelihood}, [kernel or RBF()], seed=seed)
        self._points = points
        self._rounds = 1 if likelihood.conjugate else rounds
        self._evaluations = evaluations
        self._learn = True
        self._generator = np.random.default_rng(seed)
        self._kept: Kept | None = None
        self._updates = 0

    @property
    def inducing_points(self) -> tuple[np.ndarray, ...]:
        return () if self._kept is None else self._kept.prior.points

    def update(self, data: Data) -> None:
        """Learn a batch."""
        self._updates += 1
        new = rows(self._specification.names, data)
        kept = self._kept or self._nothing(data, new.x.shape[1])
        task = Task(kept, kept.model.batch(new))
        trial = task.trial(kept.model, self._placed(kept.prior.points[0], new.x))
        held = first_sites(trial.setting)
        for _ in range(self._rounds if self._learn else 0):
            held = _fitted(trial, held).rows
            trial = task.moved(trial, held, self._evaluations)
        site = trial.setting.site(_fitted(trial, held).rows)
        self._kept = Kept(trial.wrapped, trial.prior, site)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples one at a time in closed form; hyperparameters and points do not change."""
        learn, self._learn = self._learn, False
        try:
            return one_by_one(self, self._specification.names[0], x, y)
        finally:
            self._learn = learn

    def _nothing(self, data: Data, width: int) -> "Kept":
        """A past without data and without inducing points."""
        model = literal_model(self._specification, data)
        prior = Prior.of(unwrap(model), (np.zeros((0, width)),))
        return Kept(model, prior, Site((np.zeros(0),), (np.zeros((0, 0)),)))

    def _placed(
        self, old: Float[np.ndarray, "A P"], x: Float[np.ndarray, "N P"]
    ) -> Float[np.ndarray, "M P"]:
        """Initial inducing points: a random choice of old points and of inputs of the batch."""
        wanted = self._points(self._updates)
        kept = min(len(old), wanted - wanted // self._updates)
        stay = self._generator.choice(len(old), kept, replace=False)
        distinct = np.unique(x, axis=0)
        count = min(wanted - kept, len(distinct))
        fresh = self._generator.choice(len(distinct), count, replace=False)
        return np.concatenate([old[np.sort(stay)], distinct[np.sort(fresh)]])

    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict the channel at `x`."""
        kept = learned(self._kept)
        index = position(self._specification, channel)
        model, posterior = unwrap(kept.model), kept.posterior

        def marginal(at: Float[np.ndarray, "N P"]) -> tuple[np.ndarray, np.ndarray]:
            batch = unobserved(model, at, index)
            features = Mixed.of(model, batch, factorised=False).features(kept.prior.project(at))
            found = marginals(batch, posterior, features)
            return found.mean.reshape(len(at), -1), found.covariance[0]

        return prediction(kept.model, marginal, x, index)


class Kept(NamedTuple):
    """The past: hyperparameters, the prior at the inducing points, and what data said there."""

    model: MultiTaskGP
    prior: Prior
    site: Site

    @property
    def posterior(self) -> Posterior:
        """q(v)."""
        return condition(self.site)


class Trial(NamedTuple):
    """What a choice of hyperparameters and inducing points means for the batch and the past."""

    wrapped: MultiTaskGP
    setting: DenseSetting
    prior: Prior
    cross: tuple[Float[np.ndarray, "_ N"], ...]
    projection: Projection
    mixed: Mixed
    half: Float[np.ndarray, "M A"]  # L_b⁻¹K_ba
    transfer: Float[np.ndarray, "A M"]  # C: a, whitened like its site, is C·v_b on average
    lost: float  # the part of E_q[log t(a)] that the variance of a given b takes away


class Task(NamedTuple):
    """The past, and the batch that comes after it."""

    kept: Kept
    batch: Batch

    def trial(self, wrapped: MultiTaskGP, points: Float[np.ndarray, "M P"]) -> Trial:
        model, (old,), site = unwrap(wrapped), self.kept.prior.points, self.kept.site
        prior = Prior.of(model, (points,))
        cross = prior.cross(self.batch.x)
        projection = prior.project(self.batch.x, cross)
        mixed = Mixed.of(model, self.batch, factorised=False)
        half = solve_lower(prior.chols[0], prior.cross_to((old,))[0])
        transfer = self._whitened(half.T)
        centred = old - prior.origin
        total = with_nugget(prior.kernels[0].matrix(centred, centred))
        # K_aa − Q_aa, whitened.
        left = self._whitened(self._whitened(total).T) - transfer @ transfer.T
        lost = -0.5 * float(np.vdot(site.precision[0], left))
        setting = DenseSetting(
            model, self.batch, mixed.features(projection), through(site, [transfer])
        )
        return Trial(wrapped, setting, prior, cross, projection, mixed, half, transfer, lost)

    def _whitened(self, matrix: Float[np.ndarray, "A _"]) -> Float[np.ndarray, "A _"]:
        """L_a⁻¹ times a matrix, by the prior that the site is whitened by."""
        return solve_lower(self.kept.prior.chols[0], matrix)

    def _unwhitened(self, matrix: Float[np.ndarray, "A _"]) -> Float[np.ndarray, "A _"]:
        """L_a⁻ᵀ times a matrix."""
        return solve_lower(self.kept.prior.chols[0], matrix, transpose=True)

    def moved(self, trial: Trial, held: RowSites, evaluations: int) -> Trial:
        """Better hyperparameters and inducing points for these row sites."""
        points, theta = trial.prior.points[0], free_vector(trial.wrapped)
        # Points move in units of the standard deviation of the inputs.
        spread = np.std(self.batch.x, axis=0) + 1e-12

        def at(vector: np.ndarray) -> Trial:
            free, shift = np.split(vector, [len(theta)])
            there = points + spread * shift.reshape(points.shape)
            return self.trial(with_free(trial.wrapped, free), there)

        def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, by_theta, by_points = self.bound(at(vector), held)
            gradient = np.concatenate([by_theta, np.ravel(spread * by_points)])
            return value / self.batch.size, gradient / self.batch.size

        start = np.concatenate([theta, np.zeros(points.size)])
        return at(maximise(objective, start, evaluations=evaluations)[0])

    def bound(
        self, trial: Trial, held: RowSites
    ) -> tuple[float, Float[np.ndarray, " T"], Float[np.ndarray, "M P"]]:
        """The bound with the priors of hyperparameters, and its gradient by them and by points."""
        setting, model = trial.setting, trial.setting.model
        fit, by_rows, (block,) = adjoint(setting, held)
        by_projection, by_loadings = trial.mixed.adjoint(
            trial.projection, (block.design,), by_rows.by_covariance
        )
        by_kernel, by_points = self._by_kernel(trial, block, by_projection)
        channels = by_channels(model, self.batch, by_rows, by_loadings)
        _add_exact_sites(channels[0]["likelihood"], setting, fit, block)
        gradients = {"kernels": by_kernels(model, [by_kernel]), "channels": tuple(channels)}
        prior, by_prior = log_prior(trial.wrapped)
        by_theta = free_gradient(trial.wrapped, gradients) + by_prior
        return fit.bound + trial.lost + prior, by_theta, by_points

    def _by_kernel(
        self, trial: Trial, block: ByBlock, by_projection: Projection
    ) -> tuple[dict[str, Any], Float[np.ndarray, "M P"]]:
        """Derivatives by the kernel's parameters and by the inducing points b.

        K(b, x) enters through the batch, K(b, a) and K(a, a) through the past, K(b, b) through
        both.
        """
        prior = trial.prior
        kernel, z, x = prior.kernels[0], prior.points[0] - prior.origin, self.batch.x - prior.origin
        old = self.kept.prior.points[0] - prior.origin
        by_past, by_old = self._by_past(trial, block)
        by_gram, by_cross, by_diagonal = gram_adjoints(
            prior, 0, trial.projection, by_projection, -by_past @ trial.half.T
        )
        by_kernel = kernel.pullback(z, z, by_gram, prior.grams[0])
        for more in (
            kernel.pullback(z, x, by_cross, trial.cross[0]),
            kernel.diagonal_pullback(x, by_diagonal),
            kernel.pullback(z, old, by_past),
            kernel.pullback(old, old, by_old),
        ):
            by_kernel = summed(by_kernel, more)
        # Each point stands in a row and in a column of K(b, b), which is symmetric.
        by_points = 2 * kernel.input_gradient(z, z, by_gram, prior.grams[0])
        by_points += kernel.input_gradient(z, x, by_cross, trial.cross[0])
        return by_kernel, by_points + kernel.input_gradient(z, old, by_past)

    def _by_past(
        self, trial: Trial, block: ByBlock
    ) -> tuple[Float[np.ndarray, "M A"], Float[np.ndarray, "A A"]]:
        """Derivatives by K(b, a) and K(a, a)."""
        prior, site = trial.prior, self.kept.site
        seen = site.precision[0] @ trial.transfer
        by_transfer = 2 * seen @ block.precision + np.outer(site.linear[0], block.linear)
        by_transfer += seen  # through what is lost
        by_past = solve_lower(prior.chols[0], self._unwhitened(by_transfer).T, transpose=True)
        by_old = -0.5 * self._unwhitened(self._unwhitened(site.precision[0]).T)
        by_old.flat[:: len(by_old) + 1] *= 1 + NUGGET
        return by_past, by_old


def _fitted(trial: Trial, held: RowSites) -> Fit:
    return e_step(trial.setting, held, rounds=_E_ROUNDS, tolerance=_E_TOLERANCE)[0]


def _add_exact_sites(
    by_likelihood: dict[str, Any], setting: DenseSetting, fit: Fit, block: ByBlock
) -> None:
    """Add how exact sites depend on the noise, where the only channel has such."""
    by_precision = tuple(
        own + 0.5 * explained
        for own, explained in zip(block.row_precision, fit.marginals.explained, strict=True)
    )
    offset = setting.features.offset
    for group, likelihood, mean, by_p in of_groups(
        setting.model, setting.batch, offset, by_precision
    ):
        if likelihood.conjugate:
            by_b = block.row_linear[group.flat].reshape(-1, group.latents)
            for name, more in likelihood.site_gradient(group.y, mean, by_b, by_p).items():
                by_likelihood[name] = by_likelihood[name] + more
