"""Exact GPs of Gaussian channels, with all data in one dense matrix."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, problem
from streamgp.inference.gradients import by_kernels
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.numerics.linalg import cholesky, inverse_of, solve_lower
from streamgp.parameters import free_gradient, free_size, free_vector, unwrap, with_free
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import (
    SampleScores,
    learned,
    position,
    prediction,
    start_model,
)
from streamgp_lab.baselines.gradients import log_prior
from streamgp_lab.problem import Data, rows

_FAILED = 1e20  # replaces an evidence that is not finite


class Exact:
    """An exact multi-task GP with Gaussian channels and maximum-likelihood hyperparameters.

    The weights of mean functions are integrated out, so the levels of channels are learned.

    Args:
        specification: Channels, latent functions, mean functions and seed.
        start: Hyperparameters to begin from, such as those of a sparse model.
        evaluations: The number of evaluations of the evidence and its gradient, from each start.
            With zero the hyperparameters stay as they are.
        starts: The number of random mixing weights to begin from with the first batch. The
            hyperparameters with the largest evidence are kept. Without random weights, or with a
            given start, there is only one.

    Attributes:
        model: The hyperparameters after the last update.
    """

    model: MultiTaskGP

    def __init__(
        self,
        specification: Specification,
        *,
        start: MultiTaskGP | None = None,
        evaluations: int = 40,
        starts: int = 3,
    ):
        if not all(c.conjugate for c in specification.channels.values()):
            got = ", ".join(type(c).__name__ for c in specification.channels.values())
            raise ConfigurationError(problem("Gaussian channels", got, "Use a variational model."))
        self._specification = specification
        self._evaluations = evaluations
        self._start, self._starts = start, starts
        self._batches: list[Data] = []

    def update(self, data: Data) -> None:
        """Add the batch to all earlier data, and learn from all of them again."""
        models = [self.model] if self._batches else self._first_models(data)
        self._batches.append(data)
        known = self._rows()
        if self._evaluations:
            trained = [self._trained(known, model) for model in models]
            models = [min(trained, key=lambda each: each[0])[1]]
        self.model = models[0]
        self._solved = _solved(known, unwrap(self.model))

    def _first_models(self, data: Data) -> list[MultiTaskGP]:
        """The models to begin from, which differ in their mixing weights."""
        if self._start is not None:
            return [self._start]
        own = self._specification
        first = start_model(own, data)
        if not self._evaluations or not any(free_size(c.weights) for c in first.channels):
            return [first]
        seeds = range(own.seed + 1, own.seed + self._starts)
        others = [start_model(dataclasses.replace(own, seed=seed), data) for seed in seeds]
        return [first, *others]

    def _trained(self, known: Rows, model: MultiTaskGP) -> tuple[float, MultiTaskGP]:
        """Minus the evidence, and the model, with more likely hyperparameters."""

        def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = evidence(known, with_free(model, vector))
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return _FAILED, np.zeros_like(gradient)
            return -value, -gradient

        options = {"maxfun": self._evaluations}
        found = minimize(loss, free_vector(model), jac=True, method="L-BFGS-B", options=options)
        return float(found.fun), with_free(model, found.x)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples one at a time, without changing the hyperparameters.

        Row n of a Cholesky factor is the prediction of observation n from those before it.
        """
        name = next(iter(self._specification.channels))
        evaluations, self._evaluations = self._evaluations, 0
        self.update({name: (x, y)})
        self._evaluations = evaluations
        chol, half = self._solved.chol, self._solved.half
        scores = -0.5 * (half**2 + np.log(2 * np.pi)) - np.log(np.diag(chol))
        return SampleScores({name: scores[-len(y) :]})

    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict a channel at `x`."""
        learned(self._batches or None)
        index, known, model = position(self._specification, channel), self._rows(), self.model

        def marginal(at: Float[np.ndarray, "N P"]) -> tuple[np.ndarray, np.ndarray]:
            return _predict(known, unwrap(model), self._solved, at, index)

        return prediction(model, marginal, x, index)

    def _rows(self) -> Rows:
        """All data so far, in the order in which they came."""
        return rows(self._specification.names, *self._batches)


class _Solved(NamedTuple):
    """The covariance of all observations, factorised, and what it is made of."""

    weights: Float[np.ndarray, "N Q"]
    basis: Float[np.ndarray, "N K"]  # of the mean functions
    grams: list[Float[np.ndarray, "N N"]]  # of each latent function
    precision: Float[np.ndarray, " N"]  # of the noise
    chol: Float[np.ndarray, "N N"]  # L with LLᵀ = Cov[y]
    half: Float[np.ndarray, " N"]  # L⁻¹(y − E[y])


def _solved(known: Rows, model: MultiTaskGP) -> _Solved:
    """Cov[y_n, y_r] = Σ_q w_q(n) w_q(r) k_q(x_n, x_r) + H_n·H_r, and the noise on the diagonal."""
    residual, precision = _noisy(known, model)
    x, weights = known.x - model.origin, _weights(model, known.channel)
    grams = [kernel.matrix(x, x) for kernel in model.latent_kernels]
    basis = _basis(model, known.x, known.channel)
    total = _mixed(weights, grams, weights) + basis @ basis.T
    total.flat[:: len(x) + 1] += 1 / precision
    chol = cholesky(total)
    return _Solved(weights, basis, grams, precision, chol, solve_lower(chol, residual))


def _basis(
    model: MultiTaskGP, x: Float[np.ndarray, "N P"], channel: Int[np.ndarray, " N"]
) -> Float[np.ndarray, "N K"]:
    """H: the mean functions of each row's channel, times the prior spreads of their weights.

    Every channel has columns of its own, which are zero in the rows of other channels.
    """
    columns = [
        np.where((channel == index)[:, None], own.mean(x) * own.spread, 0.0)
        for index, own in enumerate(model.channels)
    ]
    return np.concatenate(columns, axis=1)


def _weights(model: MultiTaskGP, channel: Int[np.ndarray, " N"]) -> Float[np.ndarray, "N Q"]:
    """The weights of each row. A channel with Gaussian noise has one latent parameter."""
    return np.concatenate([c.loadings for c in model.channels])[channel]


def _mixed(
    left: Float[np.ndarray, "N Q"], grams: list[np.ndarray], right: Float[np.ndarray, "R Q"]
) -> Float[np.ndarray, "N R"]:
    return sum(
        (left[:, q, None] * gram * right[:, q] for q, gram in enumerate(grams)),
        start=np.zeros((len(left), len(right))),
    )


def _noisy(
    known: Rows, model: MultiTaskGP
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """What each observation has over its mean, and the precision of its noise."""
    residual, precision = np.empty(known.size), np.empty(known.size)
    for index in map(int, np.unique(known.channel)):
        own, (likelihood, y, offset) = known.channel == index, _observed(known, model, index)
        slope, bend = likelihood.curvature(y, offset, np.zeros((len(y), 1, 1)))
        precision[own] = bend[:, 0, 0]
        residual[own] = slope[:, 0] / precision[own]
    return residual, precision


def _observed(known: Rows, model: MultiTaskGP, index: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """The likelihood of a channel, its observations and their means."""
    channel = model.channels[index]
    y = known.of(index, channel.likelihood.observation_dim)
    return channel.likelihood, y, np.broadcast_to(channel.offset, (len(y), 1))


def evidence(known: Rows, wrapped: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
    """The log evidence, with the priors of the hyperparameters, and its gradient.

    By Cov[y] = S the derivative is ½(ααᵀ − S⁻¹) with α = S⁻¹(y − E[y]). A constant is left out.
    """
    model = unwrap(wrapped)
    solved = _solved(known, model)
    alpha = solve_lower(solved.chol, solved.half, transpose=True)
    by_total = 0.5 * (np.outer(alpha, alpha) - inverse_of(solved.chol))
    value = -0.5 * float(solved.half @ solved.half) - float(np.sum(np.log(np.diag(solved.chol))))
    x, by_weights, by_latents = known.x - model.origin, np.empty(solved.weights.shape), []
    for q, (kernel, gram) in enumerate(zip(model.latent_kernels, solved.grams, strict=True)):
        weighted = by_total * solved.weights[:, q]
        by_weights[:, q] = 2 * np.einsum("nr,nr->n", weighted, gram)
        weighted *= solved.weights[:, q, None]
        by_latents.append(kernel.pullback(x, x, weighted, gram))
    channels = _by_channels(known, model, by_weights, -np.diag(by_total) / solved.precision**2)
    gradient = free_gradient(
        wrapped, {"kernels": by_kernels(model, by_latents), "channels": tuple(channels)}
    )
    prior, by_prior = log_prior(wrapped)
    return value + prior, gradient + by_prior


def _by_channels(
    known: Rows,
    model: MultiTaskGP,
    by_weights: Float[np.ndarray, "N Q"],
    by_precision: Float[np.ndarray, " N"],
) -> list[dict[str, Any]]:
    """Derivatives by weights, scale and noise of each channel, from those of its rows."""
    found: list[dict[str, Any]] = [{} for _ in model.channels]
    for index in map(int, np.unique(known.channel)):
        own, (likelihood, y, offset) = known.channel == index, _observed(known, model, index)
        by_noise = likelihood.site_gradient(
            y, offset, np.zeros((len(y), 1)), by_precision[own][:, None, None]
        )
        by_loadings = by_weights[own].sum(axis=0, keepdims=True)
        found[index] = model.channels[index].by_loadings(by_loadings) | {"likelihood": by_noise}
    return found


def _predict(
    known: Rows, model: MultiTaskGP, solved: _Solved, x: Float[np.ndarray, "R P"], index: int
) -> tuple[Float[np.ndarray, "R 1"], Float[np.ndarray, "R 1 1"]]:
    channel = model.channels[index]
    before, at = known.x - model.origin, x - model.origin
    grams = [kernel.matrix(before, at) for kernel in model.latent_kernels]
    loadings = np.repeat(channel.loadings, len(x), axis=0)
    basis = _basis(model, x, np.full(len(x), index))
    cross = _mixed(solved.weights, grams, loadings) + solved.basis @ basis.T
    gain = solve_lower(solved.chol, cross)
    prior = np.stack([kernel.diagonal(at) for kernel in model.latent_kernels])  # Q R
    variance = channel.loadings[0] ** 2 @ prior + np.sum(basis**2, axis=1)
    variance -= np.einsum("nr,nr->r", gain, gain)
    mean = channel.offset[0] + gain.T @ solved.half
    return mean[:, None], np.maximum(variance, 0.0)[:, None, None]
