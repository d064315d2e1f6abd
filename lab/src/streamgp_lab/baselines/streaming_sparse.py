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
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float
from tinygp.kernels import Kernel

from streamgp.data import Batch
from streamgp.inducing.slots import inducing as slots
from streamgp.inference.carry import through
from streamgp.inference.conditioning import Inducing, condition, factorise, features, marginals
from streamgp.inference.e_step import Fit, e_step, exact_sites, first_sites, fit_rows
from streamgp.inference.m_step import maximise
from streamgp.inference.sites import RowSites, Site, empty
from streamgp.kernels import RBF
from streamgp.likelihoods import Likelihood
from streamgp.model.mixing import Features
from streamgp.model.multitask import Generative
from streamgp.model.specification import Specification
from streamgp.numerics.compiling import compiled
from streamgp.numerics.linalg import cross_gram, gram, solve_lower
from streamgp.numerics.precision import double_precision
from streamgp.parameters import log_prior, split
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

_E_ROUNDS, _E_TOLERANCE = 50, 1e-4


class Kept(NamedTuple):
    """All that is kept of the past."""

    model: Generative
    inducing: Inducing
    site: Site  # whitened by the prior under `model` at `inducing`


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
        if self._kept is None:
            return ()
        where = self._kept.inducing
        return (np.asarray(where.points[0][where.mask[0]]),)

    @double_precision
    def update(self, data: Data) -> None:
        """Learn a batch."""
        self._updates += 1
        new = rows(self._specification.names, data)
        kept = self._kept or _nothing(start_model(self._specification, data), new.x.shape[1])
        batch, inducing = new.pack(), slots((self._placed(new.x),))
        model, held = kept.model, _begin(kept, kept.model, inducing, batch)
        for _ in range(self._rounds if self._learn else 0):
            held = _fitted(kept, model, inducing, batch, held).rows
            model, inducing = _moved(
                kept, model, inducing, batch, held, evaluations=self._evaluations
            )
        site = _fitted(kept, model, inducing, batch, held).site
        self._kept = Kept(model, inducing, site)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples one at a time in closed form; hyperparameters and points do not change."""
        learn, self._learn = self._learn, False
        try:
            return one_by_one(self, self._specification.names[0], x, y)
        finally:
            self._learn = learn

    def _placed(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "M P"]:
        """Initial inducing points: a random choice of old points and of inputs of the batch."""
        old = self.inducing_points[0] if self._kept else np.zeros((0, x.shape[1]))
        wanted = self._points(self._updates)
        kept = min(len(old), wanted - wanted // self._updates)
        stay = self._generator.choice(len(old), kept, replace=False)
        distinct = np.unique(x, axis=0)
        count = min(wanted - kept, len(distinct))
        fresh = self._generator.choice(len(distinct), count, replace=False)
        return np.concatenate([old[np.sort(stay)], distinct[np.sort(fresh)]])

    @double_precision
    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict the channel at `x`."""
        kept = learned(self._kept)
        index = position(self._specification, channel)
        return prediction(kept.model, lambda rows, _: _predict(kept, rows), x, index)


def _nothing(model: Generative, width: int) -> Kept:
    """A past without data: a single inducing point with an empty site."""
    inducing = slots((np.zeros((1, width)),))
    return Kept(model, inducing, empty(1, inducing.mask.shape[1]))


class _Setting(NamedTuple):
    model: Generative  # unwrapped
    features: Features
    carried: Site
    lost: Float[Array, ""]


def _setting(kept: Kept, wrapped: Generative, new: Inducing, batch: Batch) -> _Setting:
    """What these hyperparameters and inducing points mean for the batch and for the past."""
    model, old = paramax.unwrap(wrapped), kept.inducing
    kernel = model.latent_kernels[0]
    chol = factorise(model, new)
    rows = features(model, new, chol, batch.x, batch.channel, factorised=False)
    whitener = factorise(paramax.unwrap(kept.model), old)
    cross = cross_gram(kernel, new.points[0], new.mask[0], old.points[0], old.mask[0])
    half = solve_lower(chol[0], cross)  # L_b⁻¹K_ba
    design = solve_lower(whitener[0], half.T)  # of a, whitened like its site, given b
    left = gram(kernel, old.points[0], old.mask[0]) - half.T @ half  # K_aa − Q_aa
    open_ = solve_lower(whitener[0], solve_lower(whitener[0], left).T)
    lost = -0.5 * jnp.sum(kept.site.precision[0] * open_)
    return _Setting(model, rows, through(kept.site, design[None]), lost)


@compiled
def _begin(kept: Kept, wrapped: Generative, new: Inducing, batch: Batch) -> RowSites:
    s = _setting(kept, wrapped, new, batch)
    return first_sites(s.model, batch, s.features, s.carried)


@compiled
def _fitted(kept: Kept, wrapped: Generative, new: Inducing, batch: Batch, held: RowSites) -> Fit:
    s = _setting(kept, wrapped, new, batch)
    return e_step(
        s.model, batch, s.features, s.carried, held, rounds=_E_ROUNDS, tolerance=_E_TOLERANCE
    )[0]


@compiled
def _moved(
    kept: Kept, wrapped: Generative, new: Inducing, batch: Batch, held: RowSites,
    *, evaluations: int,
) -> tuple[Generative, Inducing]:  # fmt: skip
    """Better hyperparameters and inducing points for these row sites."""
    trainable, rest = split(wrapped)
    # Points move in units of the standard deviation of the inputs.
    spread = jnp.std(batch.x, axis=0, where=batch.mask[:, None]) + 1e-12

    def objective(moving: tuple) -> Float[Array, ""]:
        model = eqx.combine(moving[0], rest)
        points = Inducing(new.points + spread * moving[1], new.mask)
        s = _setting(kept, model, points, batch)
        rows = exact_sites(s.model, batch, s.features, held)
        bound = fit_rows(s.model, batch, s.features, s.carried, rows).bound
        return (bound + s.lost + log_prior(model)) / jnp.sum(batch.mask)

    start = (trainable, jnp.zeros_like(new.points))
    (best, shift), _ = maximise(objective, start, evaluations=evaluations)
    return eqx.combine(best, rest), Inducing(new.points + spread * shift, new.mask)


@compiled
def _predict(kept: Kept, x: Float[Array, "N P"]) -> tuple[Array, Array]:
    model = paramax.unwrap(kept.model)
    chol = factorise(model, kept.inducing)
    channel = jnp.zeros(len(x), int)
    rows = features(model, kept.inducing, chol, x, channel, factorised=False)
    at_rows = marginals(condition(kept.site), rows)
    return at_rows.mean, at_rows.covariance
