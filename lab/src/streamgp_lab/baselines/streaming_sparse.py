"""Streaming sparse GPs (Bui, Nguyen and Turner, 2017), for one channel of any likelihood.

What is kept of the past is a Gaussian over the inducing values `a` it was learned with. A new batch
gets inducing points `b` of its own: some of the old ones and some of its inputs, moved by gradient
together with the hyperparameters. The past enters through the KL divergence at the old points,
which for q(b) is the site of `a` read through p(a | b, ψ_new), less what that leaves open:

    L = E_q[log p(y|f)] − KL[q(b)‖p(b)] + E_q[log t(a)],  E_q[log t(a)] ∋ −½ tr Λ_a (K_aa − Q_aa)

For Gaussian noise this is the collapsed bound of their Eq. 9; otherwise q(b) is found by natural
gradients where they take plain ones: the same bound, and the same optimum, sooner.
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
from streamgp.numerics.compiling import compiled
from streamgp.numerics.linalg import cross_gram, gram, solve_lower
from streamgp.numerics.precision import double_precision
from streamgp.parameters import log_prior, split
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import Data, Scores, Specification, learned, one_by_one, prediction

_E_ROUNDS, _E_TOLERANCE = 50, 1e-4


class Kept(NamedTuple):
    """All that is kept of the past."""

    model: Generative
    inducing: Inducing
    site: Site  # whitened by the prior under `model` at `inducing`


class StreamingSparse:
    """A streaming sparse GP.

    Args:
        likelihood: of the one channel.
        kernel: of its function.
        points: how many inducing points there are at the t-th update, counted from one.
        rounds: alternations of q and everything else at an update (one suffices for Gaussian
            noise), of so many `evaluations` of the bound each.
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
        self._specification = Specification({name: likelihood}, [kernel or RBF()], seed)
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
        """Fold a batch in."""
        self._updates += 1
        rows = self._specification.rows(data)
        kept = self._kept or _nothing(self._specification.start(data), rows.x.shape[1])
        batch, inducing = rows.pack(), slots((self._placed(rows.x),))
        model, held = kept.model, _begin(kept, kept.model, inducing, batch)
        for _ in range(self._rounds if self._learn else 0):
            held = _fitted(kept, model, inducing, batch, held).rows
            model, inducing = _moved(
                kept, model, inducing, batch, held, evaluations=self._evaluations
            )
        site = _fitted(kept, model, inducing, batch, held).site
        self._kept = Kept(model, inducing, site)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> Scores:
        """Samples one at a time, in closed form: hyperparameters and points stay where they are."""
        learn, self._learn = self._learn, False
        try:
            return one_by_one(self, next(iter(self._specification.channels)), x, y)
        finally:
            self._learn = learn

    def _placed(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "M P"]:
        """Where the new points start: old ones and inputs, by how much each stands for."""
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
        """What the channel will show at `x`."""
        kept = learned(self._kept)
        index = self._specification.position(channel)
        return prediction(kept.model, lambda rows, _: _predict(kept, rows), x, index)


def _nothing(model: Generative, width: int) -> Kept:
    """A past without data: a single point that was told nothing."""
    inducing = slots((np.zeros((1, width)),))
    return Kept(model, inducing, empty(1, inducing.mask.shape[1]))


class _Setting(NamedTuple):
    model: Generative  # unwrapped
    features: Features
    carried: Site
    lost: Float[Array, ""]


def _setting(kept: Kept, wrapped: Generative, new: Inducing, batch: Batch) -> _Setting:
    """What hyperparameters and inducing points imply for a batch and for the past."""
    model, old = paramax.unwrap(wrapped), kept.inducing
    kernel = model.latent_kernels[0]
    chol = factorise(model, new)
    rows = features(model, new, chol, batch.x, batch.channel, factorised=False)
    whitener = factorise(paramax.unwrap(kept.model), old)
    cross = cross_gram(kernel, new.points[0], new.mask[0], old.points[0], old.mask[0])
    half = solve_lower(chol[0], cross)  # L_b⁻¹K_ba
    design = solve_lower(whitener[0], half.T)  # of a, whitened as its site is, by b
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
    # Points move in units of the inputs' spread, as hyperparameters do in log units.
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
