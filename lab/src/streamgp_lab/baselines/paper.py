"""The algorithm of *Continual Multi-task Gaussian Processes*, exactly as published.

After each batch there is a factorised q(u_q) = N(m_q, S_q) at inducing points on a new grid over
all inputs so far. With the next batch it maximises (Eq. 10, Eq. 24)

    L_C = E_q[log p(y|f)] − Σ_q KL[q_q‖p(u_q|ψ_new)] + Σ_q KL[q_q‖p(u_q|ψ_old)] − Σ_q KL[q_q‖q̃_q]

where q̃ is what the old q and the old hyperparameters predict at the new points. L-BFGS alternates
between means and Cholesky factors on one hand, hyperparameters and mixing weights on the other. q
and the weights start at random every time, and the result of a stopped optimiser is used as it is.
Channels have no mean functions, and their levels and scales are those of the first batch. In the
paper the parameters of likelihoods are given: pass fixed ones for that.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from streamgp.data.batch import Batch, Rows
from streamgp.inference.bound_gradient import ByRows, by_kernels, expected_adjoint, kernel_gradient
from streamgp.inference.posterior import add
from streamgp.inference.prior import Points, Prior
from streamgp.inference.sites import RunBlocks, inner, times
from streamgp.model.mixing import Features, Mixed, Projection
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.numerics.linalg import cholesky, solve_lower, with_nugget
from streamgp.parameters import free_gradient, free_vector, replaced, unwrap, with_free
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import (
    SampleScores,
    learned,
    literal_model,
    one_by_one,
    position,
    prediction,
)
from streamgp_lab.baselines.gradients import by_channels
from streamgp_lab.problem import Data, rows

_FAILED = 1e20  # replaces a bound that is not finite

Slope = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Moments(NamedTuple):
    """q(u_q) = N(mean, half·halfᵀ) of each latent function; `half` is lower triangular."""

    mean: Float[np.ndarray, "Q M"]
    half: Float[np.ndarray, "Q M M"]

    @property
    def vector(self) -> Float[np.ndarray, " S"]:
        """What the optimiser changes: the means, and the lower triangles."""
        rows, columns = np.tril_indices(self.mean.shape[1])
        return np.concatenate([self.mean.ravel(), self.half[:, rows, columns].ravel()])

    def at(self, vector: Float[np.ndarray, " S"]) -> "Moments":
        """Moments of the same shape from such a vector."""
        means, halves = np.split(vector, [self.mean.size])
        half = np.zeros(self.half.shape)
        rows, columns = np.tril_indices(self.mean.shape[1])
        half[:, rows, columns] = halves.reshape(len(half), -1)
        return Moments(means.reshape(self.mean.shape), half)


class Kept(NamedTuple):
    """All that is kept of the past."""

    model: MultiTaskGP
    points: Points
    q: Moments


class Paper:
    """The paper's continual GP.

    Args:
        specification: Channels, latent functions and seed.
        points: The number of inducing points per latent function and per input at the t-th update.
            With two inputs, 3 means a grid of 9.
        rounds: The number of alternations of E step and M step.
        iterations: The largest number of iterations of L-BFGS in each step.
    """

    def __init__(
        self,
        specification: Specification,
        *,
        points: Callable[[int], int],
        rounds: int = 4,
        iterations: int = 100,
    ):
        self._specification = specification
        self._points = points
        self._rounds = rounds
        self._iterations = iterations
        self._generator = np.random.default_rng(specification.seed)
        self._kept: Kept | None = None
        self._low, self._high = np.inf, -np.inf
        self._updates = 0

    @property
    def inducing_points(self) -> tuple[np.ndarray, ...]:
        return () if self._kept is None else self._kept.points

    def update(self, data: Data) -> None:
        """Learn a batch."""
        self._updates += 1
        new = rows(self._specification.names, data)
        self._low = np.minimum(self._low, new.x.min(axis=0))
        self._high = np.maximum(self._high, new.x.max(axis=0))
        model = self._kept.model if self._kept else literal_model(self._specification, data)
        points = (self._grid(),) * sum(model.draws)
        task = Task.of(model.batch(new), points, self._kept)
        q, model = self._random(points), self._shaken(model)
        for _ in range(self._rounds):
            q = q.at(self._climb(task.in_moments(q, model), q.vector))
            better = self._climb(task.in_parameters(q, model), free_vector(model))
            model = with_free(model, better)
        q = q.at(self._climb(task.in_moments(q, model), q.vector))
        self._kept = Kept(model, points, q)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples of the first channel one at a time."""
        return one_by_one(self, self._specification.names[0], x, y)

    def _grid(self) -> Float[np.ndarray, "M P"]:
        count = self._points(self._updates)
        sides = np.linspace(self._low, self._high, count).T
        return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(sides))

    def _random(self, points: Points) -> Moments:
        """A random q to start from."""
        latents, size = len(points), len(points[0])
        mean = 0.1 * self._generator.normal(size=(latents, size))
        return Moments(mean, np.tile(np.eye(size), (latents, 1, 1)))

    def _shaken(self, model: MultiTaskGP) -> MultiTaskGP:
        """The model with new random mixing weights, if there are any to learn."""
        channels = []
        for channel in model.channels:
            shape = channel.weights.free.shape
            if channel.weights.free.size:
                drawn = 0.5 * self._generator.normal(size=shape)
                channel = replaced(channel, weights=channel.weights.with_free(drawn))
            channels.append(channel)
        return replaced(model, channels=tuple(channels))

    def _climb(self, slope: Slope, start: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
        """Maximise the bound with L-BFGS."""
        if start.size == 0:
            return start

        def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
            with np.errstate(all="ignore"):
                value, gradient = slope(vector)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return _FAILED, np.zeros_like(gradient)
            return -value, -gradient

        return minimize(
            loss, start, jac=True, method="L-BFGS-B", options={"maxiter": self._iterations}
        ).x

    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict a channel at `x`."""
        kept = learned(self._kept)
        index = position(self._specification, channel)

        def marginal(at: Float[np.ndarray, "N P"]) -> tuple[np.ndarray, np.ndarray]:
            batch = _unobserved(kept.model, at, index)
            here = Here.of(kept.model, kept.points, batch)
            found = _marginals(here, batch, _white(here.prior, kept.q))
            return found.mean.reshape(len(at), -1), found.covariance[0]

        return prediction(kept.model, marginal, x, index)


@dataclasses.dataclass(frozen=True, eq=False)
class Here:
    """What a choice of hyperparameters implies for the grid and the batch."""

    wrapped: MultiTaskGP
    model: MultiTaskGP  # plain
    prior: Prior
    cross: tuple[Float[np.ndarray, "_ N"], ...]
    projection: Projection
    mixed: Mixed
    features: Features

    @classmethod
    def of(cls, wrapped: MultiTaskGP, points: Points, batch: Batch) -> "Here":
        model = unwrap(wrapped)
        prior = Prior.of(model, points)
        cross = prior.cross(batch.x)
        projection = prior.project(batch.x, cross)
        mixed = Mixed.of(model, batch, factorised=True)
        return cls(wrapped, model, prior, cross, projection, mixed, mixed.features(projection))

    @property
    def designs(self) -> tuple[Float[np.ndarray, "R M"], ...]:
        """The design of each latent function. The block of the mean functions is empty."""
        return self.features.design[:-1]


class Reference(NamedTuple):
    """A normal that q is compared with, by its mean and the factor of its covariance.

    The bound contains its KL divergence from q with this sign.
    """

    sign: int
    mean: Float[np.ndarray, " M"]
    chol: Float[np.ndarray, "M M"]


class Task(NamedTuple):
    """A batch, the new grid, and what the past says there, per latent function."""

    batch: Batch
    points: Points
    past: list[list[Reference]]

    @classmethod
    def of(cls, batch: Batch, points: Points, kept: Kept | None) -> "Task":
        past = [[] for _ in points] if kept is None else _past(kept, points)
        return cls(batch, points, past)

    def in_moments(self, q: Moments, wrapped: MultiTaskGP) -> Slope:
        """The bound and its gradient as functions of the moments, by their vector."""
        here = Here.of(wrapped, self.points, self.batch)
        return lambda vector: self.by_moments(q.at(vector), here)

    def in_parameters(self, q: Moments, wrapped: MultiTaskGP) -> Slope:
        """The bound and its gradient as functions of the free hyperparameters."""

        def slope(vector: np.ndarray) -> tuple[float, np.ndarray]:
            here = Here.of(with_free(wrapped, vector), self.points, self.batch)
            return self.by_parameters(q, here)

        return slope

    def by_moments(self, q: Moments, here: Here) -> tuple[float, Float[np.ndarray, " S"]]:
        """L_C and its derivatives by mean and factor of q; at the first batch, the usual bound."""
        value, _, by_white, _ = self._expected(q, here, parameters=False)
        found = Moments(np.empty(q.mean.shape), np.empty(q.half.shape))
        for i, chol in enumerate(here.prior.chols):
            found.mean[i] = solve_lower(chol, by_white.mean[i], transpose=True)
            found.half[i] = solve_lower(chol, by_white.half[i], transpose=True)
            for reference in self._references(here, i):
                more, by_mean, by_half = _divergence(q.mean[i], q.half[i], reference)
                value += reference.sign * more
                found.mean[i] += reference.sign * by_mean
                found.half[i] += reference.sign * by_half
        return value, found.vector

    def by_parameters(self, q: Moments, here: Here) -> tuple[float, Float[np.ndarray, " T"]]:
        """L_C and its gradient by the free hyperparameters. Of the KL terms only p_new has them."""
        value, white, by_white, by_rows = self._expected(q, here)
        by_design = []
        for i, design in enumerate(here.designs):
            for reference in self._references(here, i):
                value += reference.sign * _divergence(q.mean[i], q.half[i], reference)[0]
            spread = times(self.batch, by_rows.by_covariance, design @ white.half[i])
            by_mean = np.outer(by_rows.by_mean, white.mean[i])
            by_design.append(by_mean + 2 * spread @ white.half[i].T)
        of_means = here.features.design[-1]
        by_projection, by_loadings = here.mixed.adjoint(
            here.projection, (*by_design, of_means), by_rows.by_covariance
        )
        by_latents = kernel_gradient(
            here.prior, self.batch.x, here.cross, here.projection, by_projection,
            _by_chols(here.prior, white, by_white),
        )  # fmt: skip
        channels = by_channels(here.model, self.batch, by_rows, by_loadings)
        gradients = {"kernels": by_kernels(here.model, by_latents), "channels": tuple(channels)}
        return value, free_gradient(here.wrapped, gradients)

    def _references(self, here: Here, i: int) -> list[Reference]:
        """All that q of one latent function is compared with: p_new, and the past."""
        chol = here.prior.chols[i]
        return [Reference(-1, np.zeros(len(chol)), chol), *self.past[i]]

    def _expected(
        self, q: Moments, here: Here, *, parameters: bool = True
    ) -> tuple[float, Moments, Moments, ByRows]:
        """E_q[log p(y|f)], the whitened q, and the derivatives by that and by the rows."""
        batch, white = self.batch, _white(here.prior, q)
        at_rows = _marginals(here, batch, white)
        by_rows = expected_adjoint(
            here.model, batch, at_rows.mean, at_rows.covariance, parameters=parameters
        )
        by_white = Moments(np.empty(q.mean.shape), np.empty(q.half.shape))
        for i, design in enumerate(here.designs):
            by_white.mean[i] = design.T @ by_rows.by_mean
            spread = times(batch, by_rows.by_covariance, design @ white.half[i])
            by_white.half[i] = 2 * design.T @ spread
        return by_rows.value, white, by_white, by_rows


def _white(prior: Prior, q: Moments) -> Moments:
    """q of the whitened values L⁻¹u."""
    pairs = list(zip(prior.chols, q.mean, q.half, strict=True))
    return Moments(
        np.stack([solve_lower(chol, mean) for chol, mean, _ in pairs]),
        np.stack([solve_lower(chol, half) for chol, _, half in pairs]),
    )


def _by_chols(prior: Prior, white: Moments, by_white: Moments) -> list[Float[np.ndarray, "M M"]]:
    """Derivatives by L of each prior, but for those through the features.

    The whitened mean and factor of q are L⁻¹ times something. The divergence from the prior has
    their squares and log |L|.
    """
    found = []
    for i, chol in enumerate(prior.chols):
        by_mean, by_half = by_white.mean[i] - white.mean[i], by_white.half[i] - white.half[i]
        pulled = np.outer(by_mean, white.mean[i]) + by_half @ white.half[i].T
        found.append(-solve_lower(chol, pulled, transpose=True) - np.diag(1 / np.diag(chol)))
    return found


class _Marginals(NamedTuple):
    mean: Float[np.ndarray, " R"]
    covariance: RunBlocks


def _marginals(here: Here, batch: Batch, white: Moments) -> _Marginals:
    """q(f) of each row."""
    mean, covariance = here.features.offset, here.features.slack
    for design, own, half in zip(here.designs, white.mean, white.half, strict=True):
        spread = design @ half
        mean = mean + design @ own
        covariance = add(covariance, inner(batch, spread, spread))
    return _Marginals(mean, covariance)


def _divergence(
    mean: Float[np.ndarray, " M"], half: Float[np.ndarray, "M M"], reference: Reference
) -> tuple[float, Float[np.ndarray, " M"], Float[np.ndarray, "M M"]]:
    """KL[q‖reference], and its derivatives by q's mean and factor."""
    chol, own = reference.chol, np.diag(half)
    shift = solve_lower(chol, mean - reference.mean)
    white = solve_lower(chol, half)
    logs = np.sum(np.log(np.diag(chol)) - np.log(np.abs(own)))
    value = 0.5 * (np.sum(white**2) + shift @ shift - len(mean)) + logs
    by_half = solve_lower(chol, white, transpose=True) - np.diag(1 / own)
    return float(value), solve_lower(chol, shift, transpose=True), by_half


def _past(kept: Kept, points: Points) -> list[list[Reference]]:
    """Per latent function: the old prior at the new points, and the continual prior q̃ (Eq. 7)."""
    model = unwrap(kept.model)
    old, new = Prior.of(model, kept.points), Prior.of(model, points)
    found = []
    for i, cross in enumerate(old.cross_to(points)):
        half = solve_lower(old.chols[i], cross)
        regression = solve_lower(old.chols[i], half, transpose=True)  # K_oo⁻¹K_on
        spread = kept.q.half[i].T @ regression
        covariance = with_nugget(new.grams[i]) - half.T @ half + spread.T @ spread
        before = Reference(1, np.zeros(len(points[i])), new.chols[i])
        found.append([before, Reference(-1, regression.T @ kept.q.mean[i], cholesky(covariance))])
    return found


def _unobserved(model: MultiTaskGP, x: Float[np.ndarray, "N P"], channel: int) -> Batch:
    """Inputs of a channel without observations, as a batch."""
    width = model.channels[channel].likelihood.observation_dim
    return model.batch(Rows(x, np.full((len(x), width), np.nan), np.full(len(x), channel)))
