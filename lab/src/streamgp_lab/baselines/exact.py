"""Exact GPs of Gaussian channels, with all data in one dense matrix."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import paramax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from scipy.optimize import minimize

from streamgp.data import Batch
from streamgp.errors import ConfigurationError, problem
from streamgp.model.multitask import Generative
from streamgp.model.specification import Specification
from streamgp.numerics.compiling import compiled
from streamgp.numerics.linalg import cholesky, solve_lower
from streamgp.numerics.precision import double_precision
from streamgp.parameters import log_prior, split
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import (
    SampleScores,
    learned,
    position,
    prediction,
    start_model,
)
from streamgp_lab.problem import Data, rows


class Exact:
    """An exact multi-task GP with Gaussian channels and maximum-likelihood hyperparameters.

    Args:
        specification: Channels, latent functions and seed.
        start: Hyperparameters to begin from, such as those of a sparse model.
        evaluations: The number of evaluations of the evidence and its gradient. With zero the
            hyperparameters stay as they are.
    """

    def __init__(
        self,
        specification: Specification,
        *,
        start: Generative | None = None,
        evaluations: int = 40,
    ):
        if not all(c.conjugate for c in specification.channels.values()):
            got = ", ".join(type(c).__name__ for c in specification.channels.values())
            raise ConfigurationError(problem("Gaussian channels", got, "Use a variational model."))
        self._specification = specification
        self._evaluations = evaluations
        self._start = start
        self._batches: list[Data] = []

    @double_precision
    def update(self, data: Data) -> None:
        """Add the batch to all earlier data, and learn from all of them again."""
        if not self._batches:
            self.model = self._start or start_model(self._specification, data)
        self._batches.append(data)
        batch = self._batch()
        trainable, rest = split(self.model)
        first, unravel = ravel_pytree(trainable)

        def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = _slope(batch, unravel(jnp.asarray(vector)), rest)
            return float(value), np.asarray(ravel_pytree(gradient)[0], float)

        if self._evaluations:
            found = minimize(
                loss, np.asarray(first), jac=True, method="L-BFGS-B",
                options={"maxfun": self._evaluations},
            )  # fmt: skip
            self.model = eqx.combine(unravel(jnp.asarray(found.x)), rest)
        self._half = _factorised(batch, self.model)

    @double_precision
    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples one at a time, without changing the hyperparameters.

        Row n of a Cholesky factor is the prediction of observation n from those before it.
        """
        name = next(iter(self._specification.channels))
        evaluations, self._evaluations = self._evaluations, 0
        self.update({name: (x, y)})
        self._evaluations = evaluations
        chol, half = (np.asarray(part) for part in self._half)
        scores = -0.5 * (half**2 + np.log(2 * np.pi)) - np.log(np.diag(chol))
        return SampleScores({name: scores[-len(y) :]})

    @double_precision
    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict a channel at `x`."""
        learned(self._batches or None)
        batch, index = self._batch(), position(self._specification, channel)

        def marginal(rows: Float[Array, "N P"], index: int) -> tuple[Array, Array]:
            return _predict(batch, self.model, *self._half, rows, index)

        return prediction(self.model, marginal, x, index)

    def _batch(self) -> Batch:
        """All data so far, without padding."""
        known = rows(self._specification.names, *self._batches)
        return Batch(known.x, known.y, known.channel, np.ones(known.size, bool))


def _covariance(
    model: Generative, x: Array, channel: Array, other: Array, other_channel: Array
) -> Float[Array, "N R"]:
    """Cov[f_n, f_r] = Σ_q w_q(n) w_q(r) k_q(x_n, x_r)."""
    weights = model.loadings()[0][:, 0]
    grams = jnp.stack([kernel(x, other) for kernel in model.latent_kernels])
    return jnp.einsum("nq,rq,qnr->nr", weights[channel], weights[other_channel], grams)


def _solved(batch: Batch, wrapped: Generative) -> tuple[Float[Array, "N N"], Float[Array, " N"]]:
    """L with LLᵀ = Cov[y], and L⁻¹(y − E[y])."""
    model = paramax.unwrap(wrapped)
    x, channel = jnp.asarray(batch.x), jnp.asarray(batch.channel)
    offsets = model.loadings()[1][channel]
    _, precision = model.curvature(batch, offsets, jnp.zeros((*offsets.shape, 1)))
    total = _covariance(model, x, channel, x, channel) + jnp.diag(1 / precision[:, 0, 0])
    chol = cholesky(total)
    return chol, solve_lower(chol, (batch.y - offsets[:, 0])[:, None])[:, 0]


_factorised = compiled(_solved)


@compiled
def _slope(batch: Batch, trainable: Generative, rest: Generative) -> tuple[Array, Generative]:
    """Minus the log evidence, with the priors of the hyperparameters, and its gradient."""

    def loss(moving: Generative) -> Float[Array, ""]:
        wrapped = eqx.combine(moving, rest)
        chol, half = _solved(batch, wrapped)
        fit = 0.5 * jnp.sum(half**2) + jnp.sum(jnp.log(jnp.diag(chol)))
        return fit - log_prior(wrapped)

    return eqx.filter_value_and_grad(loss)(trainable)


@compiled
def _predict(
    batch: Batch,
    wrapped: Generative,
    chol: Float[Array, "N N"],
    half: Float[Array, " N"],
    x: Float[Array, "R P"],
    index: int,
) -> tuple[Float[Array, "R 1"], Float[Array, "R 1 1"]]:
    model = paramax.unwrap(wrapped)
    channel = jnp.full(len(x), index)
    cross = _covariance(model, jnp.asarray(batch.x), jnp.asarray(batch.channel), x, channel)
    gain = solve_lower(chol, cross)
    weights, offsets = model.loadings()
    prior = jnp.stack([kernel(x) for kernel in model.latent_kernels])  # Q R
    variance = jnp.einsum("q,qr->r", weights[index, 0] ** 2, prior) - jnp.sum(gain**2, axis=0)
    mean = offsets[index, 0] + gain.T @ half
    return mean[:, None], jnp.maximum(variance, 0.0)[:, None, None]
