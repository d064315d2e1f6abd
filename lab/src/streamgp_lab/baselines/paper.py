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

from streamgp.data.batch import Rows
from streamgp.inference.gradients import by_kernels
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
from streamgp_lab.baselines.sparse import (
    Expected,
    Function,
    Points,
    Seen,
    expected,
    functions,
    mixed,
)
from streamgp_lab.problem import Data, matrix, rows

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
    points: tuple[Points, ...]
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
        task = Task.of(new, points, self._kept)
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

    def _random(self, points: tuple[Points, ...]) -> Moments:
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
            here = Here.of(kept.model, kept.points, at)
            return mixed(here.model.channels[index], *here.marginals(here.whitened(kept.q)))

        return prediction(kept.model, marginal, matrix(x), index)


@dataclasses.dataclass(frozen=True, eq=False)
class Here:
    """What a choice of hyperparameters implies for the grid and for some inputs."""

    wrapped: MultiTaskGP
    model: MultiTaskGP  # plain
    functions: tuple[Function, ...]
    seen: tuple[Seen, ...]

    @classmethod
    def of(
        cls, wrapped: MultiTaskGP, points: tuple[Points, ...], x: Float[np.ndarray, "N P"]
    ) -> "Here":
        model = unwrap(wrapped)
        own = functions(model, points)
        return cls(wrapped, model, own, tuple(function.seen(x) for function in own))

    def whitened(self, q: Moments) -> Moments:
        """q of the whitened values L⁻¹u."""
        triples = list(zip(self.functions, q.mean, q.half, strict=True))
        return Moments(
            np.stack([solve_lower(own.chol, mean) for own, mean, _ in triples]),
            np.stack([solve_lower(own.chol, half) for own, _, half in triples]),
        )

    def marginals(
        self, white: Moments
    ) -> tuple[Float[np.ndarray, "Q N"], Float[np.ndarray, "Q N"]]:
        """Mean and variance of each latent function at the inputs."""
        means, variances = [], []
        for seen, mean, half in zip(self.seen, white.mean, white.half, strict=True):
            means.append(seen.values.T @ mean)
            variances.append(seen.left + np.sum((half.T @ seen.values) ** 2, axis=0))
        return np.stack(means), np.stack(variances)


class Reference(NamedTuple):
    """A normal that q is compared with, by its mean and the factor of its covariance.

    The bound contains its KL divergence from q with this sign.
    """

    sign: int
    mean: Float[np.ndarray, " M"]
    chol: Float[np.ndarray, "M M"]


class Task(NamedTuple):
    """A batch, the new grid, and what the past says there, per latent function."""

    batch: Rows
    points: tuple[Points, ...]
    past: list[list[Reference]]

    @classmethod
    def of(cls, batch: Rows, points: tuple[Points, ...], kept: Kept | None) -> "Task":
        past = [[] for _ in points] if kept is None else _past(kept, points)
        return cls(batch, points, past)

    def in_moments(self, q: Moments, wrapped: MultiTaskGP) -> Slope:
        """The bound and its gradient as functions of the moments, by their vector."""
        here = Here.of(wrapped, self.points, self.batch.x)
        return lambda vector: self.by_moments(q.at(vector), here)

    def in_parameters(self, q: Moments, wrapped: MultiTaskGP) -> Slope:
        """The bound and its gradient as functions of the free hyperparameters."""

        def slope(vector: np.ndarray) -> tuple[float, np.ndarray]:
            here = Here.of(with_free(wrapped, vector), self.points, self.batch.x)
            return self.by_parameters(q, here)

        return slope

    def by_moments(self, q: Moments, here: Here) -> tuple[float, Float[np.ndarray, " S"]]:
        """L_C and its derivatives by mean and factor of q; at the first batch, the usual bound."""
        white = here.whitened(q)
        said = expected(here.model, self.batch, *here.marginals(white), parameters=False)
        by_white, value = _by_white(here, white, said), said.value
        found = Moments(np.empty(q.mean.shape), np.empty(q.half.shape))
        for i, function in enumerate(here.functions):
            found.mean[i] = solve_lower(function.chol, by_white.mean[i], transpose=True)
            found.half[i] = solve_lower(function.chol, by_white.half[i], transpose=True)
            for reference in self._references(function, i):
                more, by_mean, by_half = _divergence(q.mean[i], q.half[i], reference)
                value += reference.sign * more
                found.mean[i] += reference.sign * by_mean
                found.half[i] += reference.sign * by_half
        return value, found.vector

    def by_parameters(self, q: Moments, here: Here) -> tuple[float, Float[np.ndarray, " T"]]:
        """L_C and its gradient by the free hyperparameters. Of the KL terms only p_new has them."""
        white = here.whitened(q)
        said = expected(here.model, self.batch, *here.marginals(white))
        by_white, value, by_latents = _by_white(here, white, said), said.value, []
        for i, (function, seen) in enumerate(zip(here.functions, here.seen, strict=True)):
            for reference in self._references(function, i):
                value += reference.sign * _divergence(q.mean[i], q.half[i], reference)[0]
            mean, half = white.mean[i], white.half[i]
            by_variance = said.by_variance[i]
            by_values = np.outer(mean, said.by_mean[i])
            by_values += 2 * half @ (half.T @ seen.values) * by_variance
            # The whitened moments are L⁻¹ times something, and the divergence from the prior has
            # their squares and log |L|.
            pulled = np.outer(by_white.mean[i] - mean, mean) + (by_white.half[i] - half) @ half.T
            by_chol = -solve_lower(function.chol, pulled, transpose=True)
            by_chol -= np.diag(1 / np.diag(function.chol))
            by_latents.append(function.gradient(seen, by_values, by_variance, by_chol).parameters)
        gradients = {"kernels": by_kernels(here.model, by_latents), "channels": said.channels}
        return value, free_gradient(here.wrapped, gradients)

    def _references(self, function: Function, i: int) -> list[Reference]:
        """All that q of one latent function is compared with: p_new, and the past."""
        return [Reference(-1, np.zeros(len(function.chol)), function.chol), *self.past[i]]


def _by_white(here: Here, white: Moments, said: Expected) -> Moments:
    """Derivatives of what rows are expected to say by the whitened moments."""
    found = Moments(np.empty(white.mean.shape), np.empty(white.half.shape))
    for i, seen in enumerate(here.seen):
        found.mean[i] = seen.values @ said.by_mean[i]
        spread = (seen.values * said.by_variance[i]) @ seen.values.T
        found.half[i] = 2 * spread @ white.half[i]
    return found


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


def _past(kept: Kept, points: tuple[Points, ...]) -> list[list[Reference]]:
    """Per latent function: the old prior at the new points, and the continual prior q̃ (Eq. 7)."""
    model = unwrap(kept.model)
    found = []
    for i, (old, z) in enumerate(zip(functions(model, kept.points), points, strict=True)):
        new = Function.of(old.kernel, old.origin, z)
        half = solve_lower(old.chol, old.to(z))
        regression = solve_lower(old.chol, half, transpose=True)  # K_oo⁻¹K_on
        spread = kept.q.half[i].T @ regression
        covariance = with_nugget(new.gram) - half.T @ half + spread.T @ spread
        before = Reference(1, np.zeros(len(z)), new.chol)
        found.append([before, Reference(-1, regression.T @ kept.q.mean[i], cholesky(covariance))])
    return found
