"""Learning: what one update does with its batch.

Alternates E and M steps on the continual bound, and says what is to be remembered of the batch.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference import memory, noise
from streamgp.inference.bound_gradient import (
    ByBlock,
    ByRows,
    adjoint,
    by_kernels,
    carried_adjoint,
    kernel_gradient,
    summed,
)
from streamgp.inference.carry import through
from streamgp.inference.channel_memory import expand_channels
from streamgp.inference.e_step import (
    Fit,
    Setting,
    e_step,
    exact_sites,
    first_sites,
    fit_rows,
)
from streamgp.inference.kernel_memory import expand_kernels
from streamgp.inference.m_step import FLAT, maximise
from streamgp.inference.memory import Memory, Vector
from streamgp.inference.prior import Factors, Prior
from streamgp.inference.sites import RowSites
from streamgp.inference.state import State
from streamgp.model.mixing import Features, Mixed, Projection
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import (
    free_gradient,
    free_size,
    free_vector,
    prior_of,
    unwrap,
    with_free,
)
from streamgp.registry import storable

_ORDINARY_BATCH = 100


@storable
@dataclasses.dataclass(frozen=True)
class VEM:
    """Variational EM: how hyperparameters are learned.

    Args:
        rounds: How often E and M step alternate. One is enough when every channel is conjugate:
            the bound is then collapsed.
        evaluations: How often an M step may evaluate the bound and its gradient.
        every: Hyperparameters are learned once that many observations have come since they last
            were, sooner while there are few. A larger batch always learns them, a stream of
            single samples now and then.
    """

    rounds: int = 2
    evaluations: int = 40
    every: int = 100


class Options(NamedTuple):
    """How E steps are made."""

    factorised: bool
    e_rounds: int
    e_tolerance: float


class Trial(NamedTuple):
    """A choice of hyperparameters, and all that it implies for a batch before its own sites."""

    wrapped: MultiTaskGP
    setting: Setting
    prior: Prior
    cross: tuple[Float[np.ndarray, "_ N"], ...]
    projection: Projection
    mixed: Mixed
    maps: Factors | None  # C: v under the state's prior is C·v under this one; None for identity
    strength: float  # of the carried site, where noise scales it


class _Beliefs(NamedTuple):
    """Normal priors on the free vector, and where the memory is expanded."""

    centre: Vector
    certainty: Vector  # one over the spread; zero where a prior has no say
    anchor: Vector


class Learned(NamedTuple):
    """How far learning has come: hyperparameters (wrapped), the fit, and counts of the work."""

    trial: Trial
    fit: Fit
    e_rounds: int
    m_evaluations: int


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
    """A batch that meets a state."""

    state: State
    batch: Batch
    options: Options

    def trial(self, wrapped: MultiTaskGP) -> Trial:
        """What these hyperparameters imply."""
        state, batch, factorised = self.state, self.batch, self.options.factorised
        same = wrapped is state.model
        model = state.plain if same else unwrap(wrapped)
        prior = state.prior if same else Prior.of(model, state.points)
        cross = prior.cross(batch.x)
        projection = prior.project(batch.x, cross)
        mixed = Mixed.of(model, batch, factorised=factorised)
        maps, carried, strength = None, state.site, 1.0
        if not same:
            maps = tuple(map(solve_lower, state.prior.chols, prior.chols))
            carried = through(state.site, maps)
            if state.noise_is_exact:
                strength = noise.strength(state.plain, model)
                carried = carried.scaled(strength)
        setting = Setting(model, batch, mixed.features(projection), carried)
        return Trial(wrapped, setting, prior, cross, projection, mixed, maps, strength)

    def of_noise(self, plain: MultiTaskGP) -> float:
        """What the past says of a lone channel's noise, beside its site."""
        if not self.state.noise_is_exact:
            return 0.0
        return noise.past(plain, self.state.count, self.state.energy)

    def learn(self, trial: Trial, rule: VEM | None) -> Learned:
        """Alternate E and M steps from a trial on, ending with an E step.

        A collapsed bound needs no E step: its sites are exact.
        """
        rows = first_sites(trial.setting)
        if trial.setting.model.conjugate and not self.options.factorised:
            evaluations = 0
            if rule is not None:
                trial, evaluations = self._m(trial, rows, rule)
                rows = exact_sites(trial.setting, rows)
            return Learned(trial, fit_rows(trial.setting, rows), 0, evaluations)
        tolerance = self.options.e_tolerance
        e_rounds = m_evaluations = 0
        if rule is not None:
            # An M step that stops at such gains asks for no finer fit.
            early = max(tolerance, FLAT * self.batch.size)
            for _ in range(rule.rounds):
                fit, more = self._e(trial, rows, early)
                trial, evaluations = self._m(trial, fit.rows, rule)
                rows = fit.rows
                e_rounds, m_evaluations = e_rounds + more, m_evaluations + evaluations
        fit, more = self._e(trial, rows, tolerance)
        return Learned(trial, fit, e_rounds + more, m_evaluations)

    def _e(self, trial: Trial, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        return e_step(trial.setting, rows, rounds=self.options.e_rounds, tolerance=tolerance)

    def _m(self, trial: Trial, rows: RowSites, rule: VEM) -> tuple[Trial, int]:
        start, beliefs = free_vector(trial.wrapped), self._beliefs(trial.wrapped)
        latest = (start, trial)

        def at(theta: Vector) -> Trial:
            nonlocal latest
            if not np.array_equal(theta, latest[0]):
                latest = (theta, self.trial(with_free(trial.wrapped, theta)))
            return latest[1]

        best, count = maximise(
            lambda theta: self._objective(at(theta), rows, theta, beliefs),
            start,
            evaluations=rule.evaluations,
        )
        return at(best), count

    def objective(self, trial: Trial, held: RowSites) -> tuple[float, Float[np.ndarray, " T"]]:
        """Bound, priors and memory per observation, with the rows' sites held; and the gradient.

        Holding sites rather than q follows the posterior as hyperparameters move, a tighter
        bound than plain variational EM's (Adam et al., 2021).
        """
        beliefs = self._beliefs(trial.wrapped)
        return self._objective(trial, held, free_vector(trial.wrapped), beliefs)

    def _objective(
        self, trial: Trial, held: RowSites, theta: Vector, beliefs: "_Beliefs"
    ) -> tuple[float, Vector]:
        value, gradient = self.bound(trial, held)
        deviation = (theta - beliefs.centre) * beliefs.certainty
        step = theta - beliefs.anchor
        value += self.state.memory.value(step) - 0.5 * float(deviation @ deviation)
        gradient = gradient + self.state.memory.slope(step) - deviation * beliefs.certainty
        # A small batch borrows from the past the size that makes the objective of order one.
        size = max(self.batch.size, min(max(self.state.count, 1.0), _ORDINARY_BATCH))
        return value / size, gradient / size

    def _beliefs(self, wrapped: MultiTaskGP) -> "_Beliefs":
        """What is believed of hyperparameters beside the bound; an M step does not change it."""
        centre, width = prior_of(wrapped)
        return _Beliefs(centre, self._has_say(wrapped) / width, free_vector(self.state.model))

    def _has_say(self, wrapped: MultiTaskGP) -> Float[np.ndarray, " T"]:
        """One for parameters whose priors count: not those of channels without data.

        Those stay as they started.
        """
        heard = memory.heard(self.state.memory, wrapped)
        for group in self.batch.groups:
            heard[group.channel] += len(group.y)
        if len(wrapped.channels) == 1:
            heard += self.state.count
        parts = [np.ones(free_size(wrapped.kernels))]
        for channel, said in zip(wrapped.channels, heard, strict=True):
            parts.append(np.full(free_size(channel), float(said > 0)))
        return np.concatenate(parts)

    def bound(self, trial: Trial, held: RowSites) -> tuple[float, Float[np.ndarray, " T"]]:
        """The bound with the rows' sites held, and its gradient by the free vector.

        What is kept of a lone channel's noise beside its site is part of it.
        """
        fit, by_rows, blocks = adjoint(trial.setting, held)
        gradients = self._gradients(trial, fit, by_rows, blocks)
        value = fit.bound + self.of_noise(trial.setting.model)
        return value, free_gradient(trial.wrapped, gradients)

    def _gradients(
        self, trial: Trial, fit: Fit, by_rows: ByRows, blocks: list[ByBlock]
    ) -> dict[str, Any]:
        """Derivatives of the bound by every plain hyperparameter, nested as the model is."""
        model, state = trial.setting.model, self.state
        by_design = tuple(block.design for block in blocks)
        by_projection, by_loadings = trial.mixed.adjoint(
            trial.projection, by_design, by_rows.by_covariance
        )
        by_chols = None
        if state.count:
            by_maps = carried_adjoint(
                state.site.scaled(trial.strength), trial.maps, blocks, trial.prior.sizes
            )
            by_chols = [
                solve_lower(chol, by, transpose=True)
                for chol, by in zip(state.prior.chols, by_maps, strict=True)
            ]
        by_latents = kernel_gradient(
            trial.prior, self.batch.x, trial.cross, trial.projection, by_projection, by_chols
        )
        channels = self._by_channels(trial, fit, by_rows, blocks, by_loadings)
        if self.state.noise_is_exact:
            by_noise = {"noise": self._by_noise(trial, blocks)}
            channels[0]["likelihood"] = summed(channels[0]["likelihood"], by_noise)
        return {"kernels": by_kernels(model, by_latents), "channels": tuple(channels)}

    def _by_channels(
        self,
        trial: Trial,
        fit: Fit,
        by_rows: ByRows,
        blocks: list[ByBlock],
        by_loadings: tuple[Float[np.ndarray, "J Q"], ...],
    ) -> list[dict[str, Any]]:
        """Derivatives by the parameters of each channel; zero for those without rows."""
        model, batch, features, _ = trial.setting
        channels: list[dict[str, Any]] = [{"likelihood": {}} for _ in model.channels]
        for group, loadings in zip(batch.groups, by_loadings, strict=True):
            by = channels[group.channel]
            by["weights"] = model.channels[group.channel].scale[:, None] * loadings
            by["likelihood"] = dict(by_rows.by_likelihood[group.channel])
        if len(blocks) > 1:  # all sites are held
            return channels
        by_precision = tuple(
            own + 0.5 * explained
            for own, explained in zip(blocks[0].row_precision, fit.marginals.explained, strict=True)
        )
        for group, likelihood, offset, by_p in of_groups(
            model, batch, features.offset, by_precision
        ):
            if likelihood.conjugate:
                by_b = blocks[0].row_linear[group.flat].reshape(-1, group.latents)
                by = channels[group.channel]
                by["likelihood"] = summed(
                    by["likelihood"], likelihood.site_gradient(group.y, offset, by_b, by_p)
                )
        return channels

    def _by_noise(self, trial: Trial, blocks: list[ByBlock]) -> float:
        """How the carried site's strength, and what is kept beside it, depend on the noise."""
        sigma, carried = noise.noise_of(trial.setting.model), trial.setting.carried
        said = float(np.vdot(blocks[0].linear, carried.linear[0]))
        said += float(np.vdot(blocks[0].precision, carried.precision[0]))
        return -2 * said / sigma + noise.past_slope(
            trial.setting.model, self.state.count, self.state.energy
        )

    def remembered(self, learned: Learned, *, kernels: bool) -> Memory:
        """The state's memory with the batch's: how its expected log-density depends on θ.

        q(u) is held fixed. Of the `kernels` it is worth its cost only when a whole batch is
        learned from.
        """
        trial = learned.trial
        past = self.state.memory.recentred(trial.wrapped, self.state.model)
        if self.state.noise_is_exact and not kernels:
            return past
        return past + self._said(learned, kernels=kernels)

    def _said(self, learned: Learned, *, kernels: bool) -> Memory:
        """What the batch says of the hyperparameters, beside its site."""
        trial, fit = learned.trial, learned.fit
        of_kernels = memory.blank(trial.wrapped.kernels)
        if kernels:
            of_kernels = expand_kernels(
                trial.wrapped, trial.setting, trial.prior, trial.mixed, fit.posterior
            )
        if self.state.noise_is_exact:
            return memory.joined(of_kernels, memory.blank(trial.wrapped.channels))
        of_channels = expand_channels(
            trial.wrapped, trial.setting, trial.projection, fit.rows, fit.marginals, fit.posterior
        )
        return memory.joined(of_kernels, of_channels)


def counted(
    state: State, model: MultiTaskGP, batch: Batch, features: Features
) -> tuple[float, float]:
    """The state's count and energy with the batch's added; `model` is plain."""
    count = state.count + batch.size
    if not state.noise_is_exact:
        return count, state.energy
    return count, state.energy + noise.energy(model, batch, features)
