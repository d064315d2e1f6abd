"""The algorithm of *Continual Multi-task Gaussian Processes*, exactly as published.

After each batch there is a factorised q(u_q) = N(m_q, S_q) at inducing points on a new grid over
all inputs so far. With the next batch it maximises (Eq. 10, Eq. 19)

    L_C = E_q[log p(y|f)] − Σ_q KL[q_q‖p(u_q|ψ_new)] + Σ_q KL[q_q‖p(u_q|ψ_old)] − Σ_q KL[q_q‖q̃_q]

where q̃ is what the old q and the old hyperparameters predict at the new points. L-BFGS alternates
between means and Cholesky factors on one hand, hyperparameters and mixing weights on the other. q
and the weights start at random every time, and the result of a stopped optimiser is used as it is.
In the paper the parameters of likelihoods are given: pass fixed ones for that.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree
from scipy.optimize import minimize

from streamgp.data import Batch
from streamgp.inducing.slots import inducing as slots
from streamgp.inference.bounds import Normal, kl_divergence, paper_bound
from streamgp.inference.conditioning import Inducing, factorise, features
from streamgp.model.multitask import Generative
from streamgp.model.specification import Specification
from streamgp.numerics.compiling import compiled
from streamgp.numerics.linalg import cross_gram, gram, solve_lower
from streamgp.numerics.precision import double_precision
from streamgp.parameters import split
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import (
    SampleScores,
    learned,
    one_by_one,
    position,
    prediction,
    start_model,
)
from streamgp_lab.problem import Data, rows

_FAILED = 1e20  # replaces a bound that is not finite


class Moments(eqx.Module):
    """q(u_q) = N(mean, half·halfᵀ) of each latent function: what the optimiser changes."""

    mean: Float[Array, "Q M"]
    half: Float[Array, "Q M M"]

    def of(self, q: int) -> Normal:
        half = jnp.tril(self.half[q])
        return Normal(self.mean[q], half @ half.T)


class Kept(NamedTuple):
    """All that is kept of the past."""

    model: Generative
    inducing: Inducing
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
        if self._kept is None:
            return ()
        where = self._kept.inducing
        return tuple(np.asarray(z[mask]) for z, mask in zip(where.points, where.mask, strict=True))

    @double_precision
    def update(self, data: Data) -> None:
        """Learn a batch."""
        self._updates += 1
        new = rows(self._specification.names, data)
        self._low = np.minimum(self._low, new.x.min(axis=0))
        self._high = np.maximum(self._high, new.x.max(axis=0))
        model = self._kept.model if self._kept else start_model(self._specification, data)
        grid = slots((self._grid(),) * sum(model.draws))
        task = _Task(new.pack(), grid, self._kept)
        q, model = self._random(grid), self._shaken(model)
        for _ in range(self._rounds):
            q = self._climb(lambda q, model=model: (task, q, model), q)
            trainable, rest = split(model)
            better = self._climb(
                lambda t, q=q, rest=rest: (task, q, eqx.combine(t, rest)), trainable
            )
            model = eqx.combine(better, rest)
        q = self._climb(lambda q: (task, q, model), q)
        self._kept = Kept(model, grid, q)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples of the first channel one at a time."""
        return one_by_one(self, self._specification.names[0], x, y)

    def _grid(self) -> Float[np.ndarray, "M P"]:
        count = self._points(self._updates)
        sides = np.linspace(self._low, self._high, count).T
        return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(sides))

    def _random(self, grid: Inducing) -> Moments:
        """A random q to start from. Empty slots stay at their prior and do not count."""
        latents, size = grid.mask.shape
        mean = 0.1 * self._generator.normal(size=(latents, size))
        half = jnp.broadcast_to(jnp.eye(size), (latents, size, size))
        return Moments(jnp.where(grid.mask, mean, 0.0), half)

    def _shaken(self, model: Generative) -> Generative:
        """The model with new random mixing weights, if there are any to learn."""
        weights = [channel.weights for channel in model.channels]
        trainable, rest = split(weights)
        drawn = jax.tree.map(
            lambda w: jnp.asarray(0.5 * self._generator.normal(size=w.shape)), trainable
        )
        return eqx.tree_at(
            lambda m: [channel.weights for channel in m.channels], model, eqx.combine(drawn, rest)
        )

    def _climb(self, arguments: Callable[[PyTree], tuple], start: PyTree) -> PyTree:
        """Maximise the bound over one of its arguments with L-BFGS."""
        first, unravel = ravel_pytree(start)
        if first.size == 0:
            return start
        which = 1 if isinstance(start, Moments) else 2

        def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = _slope(*arguments(unravel(jnp.asarray(vector))), which=which)
            flat = np.asarray(ravel_pytree(gradient)[0], float)
            if not (np.isfinite(value) and np.isfinite(flat).all()):
                return _FAILED, np.zeros_like(flat)
            return float(value), flat

        found = minimize(
            loss, np.asarray(first), jac=True, method="L-BFGS-B",
            options={"maxiter": self._iterations},
        )  # fmt: skip
        return unravel(jnp.asarray(found.x))

    @double_precision
    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict a channel at `x`."""
        kept = learned(self._kept)
        index = position(self._specification, channel)
        return prediction(kept.model, lambda rows, i: _predict(kept, rows, i), x, index)


class _Task(NamedTuple):
    batch: Batch
    grid: Inducing
    past: Kept | None


@compiled
def _slope(task: _Task, q: Moments, wrapped: Generative, *, which: int) -> tuple[Array, PyTree]:
    """−L_C and its gradient with respect to q, or to the hyperparameters."""
    if which == 1:
        return eqx.filter_value_and_grad(lambda q: -_bound(task, q, wrapped))(q)
    trainable, rest = split(wrapped)
    return eqx.filter_value_and_grad(lambda t: -_bound(task, q, eqx.combine(t, rest)))(trainable)


def _bound(task: _Task, q: Moments, wrapped: Generative) -> Float[Array, ""]:
    """L_C; at the first batch, the ordinary bound."""
    model = paramax.unwrap(wrapped)
    mean, covariance = _marginals(model, task.grid, q, task.batch.x, task.batch.channel)
    expected = model.per_row(
        lambda likelihood, *row: likelihood.expected_log_density(*row),
        task.batch, mean, covariance,
    )  # fmt: skip
    bound, priors = jnp.sum(expected), _priors(model, task.grid)
    if task.past is None:
        return bound - sum(kl_divergence(q.of(i), prior) for i, prior in enumerate(priors))
    before = paramax.unwrap(task.past.model)
    for i, (new, old) in enumerate(zip(priors, _priors(before, task.grid), strict=True)):
        bound = paper_bound(bound, q.of(i), new, old, _continual(before, task.past, task.grid, i))
    return bound


def _priors(model: Generative, grid: Inducing) -> list[Normal]:
    zeros = jnp.zeros(grid.mask.shape[1])
    kernels = zip(model.latent_kernels, grid.points, grid.mask, strict=True)
    return [Normal(zeros, gram(kernel, z, mask)) for kernel, z, mask in kernels]


def _continual(model: Generative, past: Kept, grid: Inducing, index: int) -> Normal:
    """q̃(u): the prediction of the old q at the new points (Eq. 7)."""
    kernel, old = model.latent_kernels[index], past.inducing
    z, mask = old.points[index], old.mask[index]
    new = gram(kernel, grid.points[index], grid.mask[index])
    chol = factorise(model, old)[index]
    cross = cross_gram(kernel, z, mask, grid.points[index], grid.mask[index])
    half = solve_lower(chol, cross)
    regression = solve_lower(chol, half, transpose=True)  # K_oo⁻¹K_on
    q = past.q.of(index)
    covariance = new - half.T @ half + regression.T @ q.covariance @ regression
    return Normal(regression.T @ q.mean, covariance)


def _marginals(
    model: Generative, grid: Inducing, q: Moments, x: Float[Array, "N P"], channel: Array
) -> tuple[Float[Array, "N J"], Float[Array, "N J J"]]:
    """q(f) of each row."""
    chol = factorise(model, grid)
    rows = features(model, grid, chol, x, channel, factorised=True)
    mean = solve_lower(chol, q.mean[..., None])[..., 0]  # of the whitened values
    half = solve_lower(chol, jnp.tril(q.half))
    spread = jnp.einsum("njgs,gst->njgt", rows.design, half)
    covariance = jnp.einsum("njgt,nkgt->njk", spread, spread) + rows.slack
    return rows.offset + jnp.einsum("njgs,gs->nj", rows.design, mean), covariance


@compiled
def _predict(kept: Kept, x: Float[Array, "N P"], index: int) -> tuple[Array, Array]:
    model = paramax.unwrap(kept.model)
    return _marginals(model, kept.inducing, kept.q, x, jnp.full(len(x), index))
