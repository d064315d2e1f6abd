"""A batch that meets a state at inducing points: E and M steps on the continual bound."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.alternating import alternated
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.e_step import Fit, counted, e_step, exact_sites, first_sites, fit_rows
from streamgp.inference.gradients import ByRows, by_kernels, summed
from streamgp.inference.m_step import Vector, maximise
from streamgp.inference.sites import RowSites, Site, through
from streamgp.inference.sparse.absorbed import Absorbed, Reading, absorbed, believable
from streamgp.inference.sparse.bound_gradient import (
    BySite,
    adjoint,
    carried_adjoint,
    kernel_gradient,
)
from streamgp.inference.sparse.prior import Factors, Prior
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.inference.sparse.state import State
from streamgp.inference.vem import VEM, heard_with
from streamgp.model.mixing import Mixed, Projection, basis_design
from streamgp.model.multitask import Channel, MultiTaskGP, of_groups
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import free_gradient, free_vector, replaced, unwrap, with_free

_SLOWLY = 0.6  # the power of the part of rows that are new: between a half and one it converges
_SMALL = 100  # observations: a smaller batch borrows from the past for the scale of its objective


class Options(NamedTuple):
    """How E steps are made."""

    e_rounds: int
    e_tolerance: float


class Trial(NamedTuple):
    """A choice of hyperparameters, and all that it implies for a batch before its own sites."""

    wrapped: MultiTaskGP
    setting: SparseSetting
    prior: Prior
    cross: tuple[Float[np.ndarray, "_ N"], ...]
    projection: Projection
    mixed: Mixed
    reading: Reading
    said: Site  # by the past, before it is mapped
    maps: Factors | None  # C: v under the state's prior is C·v under this one; None for identity


class Learned(NamedTuple):
    """The result of learning: hyperparameters (wrapped), the fit, and counts of the work."""

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

    @functools.cached_property
    def _basis(self) -> Float[np.ndarray, "R K"]:
        """The mean functions' columns of the design, which no hyperparameter changes."""
        return basis_design(self.state.plain, self.batch)

    @functools.cached_property
    def _cross(self) -> tuple[Float[np.ndarray, "_ N"], ...]:
        return self.state.prior.cross(self.batch.x)

    @functools.cached_property
    def _projection(self) -> Projection:
        return self.state.prior.project(self.batch.x, self._cross)

    @functools.cached_property
    def _kernels(self) -> Vector:
        return free_vector(self.state.model.kernels)

    def trial(self, wrapped: MultiTaskGP) -> Trial:
        """What these hyperparameters imply."""
        state, batch = self.state, self.batch
        same = wrapped is state.model
        model = state.plain if same else unwrap(wrapped)
        reading = state.reading if same else Reading.of(model, state.plain)
        maps = None
        if same or self._has_same_kernels(wrapped):
            prior, cross, projection = state.prior, self._cross, self._projection
        else:
            prior = Prior.of(model, state.points)
            cross = prior.cross(batch.x)
            projection = prior.project(batch.x, cross)
            maps = tuple(map(solve_lower, state.prior.chols, prior.chols))
        said = state.site if same else state.absorbed.site(reading, state.sizes)
        carried = said if maps is None else through(said, maps)
        mixed = Mixed.of(model, batch, self._basis)
        setting = SparseSetting(model, batch, mixed.features(projection), carried)
        return Trial(wrapped, setting, prior, cross, projection, mixed, reading, said, maps)

    def _has_same_kernels(self, wrapped: MultiTaskGP) -> bool:
        """Whether only weights and likelihoods differ from the state's model."""
        if wrapped.kernels is self.state.model.kernels:
            return True
        return np.array_equal(free_vector(wrapped.kernels), self._kernels)

    def learn(self, trial: Trial, rule: VEM | None) -> Learned:
        """Alternate E and M steps from a trial on, ending with an E step.

        A collapsed bound needs no E step: its sites are exact.
        """
        rows = first_sites(trial.setting)
        if trial.setting.model.conjugate:
            evaluations = 0
            if rule is not None:
                trial, evaluations = self._m(trial, rows, rule.evaluations)
                rows = exact_sites(trial.setting, rows)
            return Learned(trial, fit_rows(trial.setting, rows), 0, evaluations)
        each = [] if rule is None else [rule.evaluations] * rule.rounds
        return Learned(*alternated(self, trial, rows, each, self.batch.size))

    @property
    def tolerance(self) -> float:
        """The gain of the bound, in nats, below which an E step ends."""
        return self.options.e_tolerance

    def e(self, trial: Trial, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""
        return e_step(trial.setting, rows, rounds=self.options.e_rounds, tolerance=tolerance)

    def m(self, trial: Trial, fit: Fit, evaluations: int) -> tuple[Trial, int]:
        """Hyperparameters that a fit thinks better, and how many evaluations it took."""
        return self._m(trial, fit.rows, evaluations)

    def worth(self, trial: Trial, fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""
        believed = self._beliefs(trial.wrapped).value(free_vector(trial.wrapped))
        return fit.bound + self.state.absorbed.beside(trial.reading) + believed

    def _m(self, trial: Trial, rows: RowSites, evaluations: int) -> tuple[Trial, int]:
        start, beliefs = free_vector(trial.wrapped), self._beliefs(trial.wrapped)
        latest = (start, trial)

        def at(theta: Vector) -> Trial:
            nonlocal latest
            if not np.array_equal(theta, latest[0]):
                latest = (theta, self.trial(with_free(trial.wrapped, theta)))
            return latest[1]

        best, count, _ = maximise(
            lambda theta: beliefs.objective(theta, *self.bound(at(theta), rows)),
            start,
            evaluations=evaluations,
        )
        learned = self._slowed(with_free(trial.wrapped, best))
        return at(best) if learned is None else self.trial(learned), count

    def _slowed(self, learned: MultiTaskGP) -> MultiTaskGP | None:
        """What was learned, with small steps of what sites cannot tell; None if there are none.

        Those are parameters of likelihoods beside a noise that scales sites, and weights of
        channels with several latent parameters. Only the new rows speak of them, and so they move
        the less, the more rows there have been: a stochastic approximation (Robbins, Monro, 1951).
        """
        if not self.state.count or self.state.plain.conjugate:
            return None
        channels = []
        old_heard, heard = self.state.heard, self.heard
        for d, new in enumerate(learned.channels):
            old = self.state.model.channels[d]
            rate = (1 - old_heard[d] / max(heard[d], 1.0)) ** _SLOWLY if heard[d] else 0.0
            if not self.state.plain.channels[d].likelihood.scales_sites:
                new = replaced(new, likelihood=_part_of_the_way(old, new, "likelihood", rate))
            if len(self.state.plain.channels[d].loadings) > 1:
                for name in ("weights", "scale"):
                    new = replaced(new, **{name: _part_of_the_way(old, new, name, rate)})
            channels.append(new)
        return replaced(learned, channels=tuple(channels))

    def _beliefs(self, wrapped: MultiTaskGP) -> Beliefs:
        size = max(self.batch.size, min(max(self.state.count, 1.0), _SMALL))
        return Beliefs.of(wrapped, self.heard)._replace(size=float(size))

    @functools.cached_property
    def heard(self) -> Float[np.ndarray, " D"]:
        """The observations of each channel, past and new."""
        return heard_with(self.state.heard, self.batch)

    def bound(self, trial: Trial, held: RowSites) -> tuple[float, Float[np.ndarray, " T"]]:
        """The bound with the rows' sites held, and its gradient by the free vector.

        Holding sites rather than q follows the posterior as hyperparameters move, a tighter
        bound than plain variational EM's (Adam et al., 2021). What the past says of weights and
        noises beside its site is part of it.
        """
        fit, by_rows, by = adjoint(trial.setting, held)
        gradients = self._gradients(trial, fit, by_rows, by)
        value = fit.bound + self.state.absorbed.beside(trial.reading)
        return value, free_gradient(trial.wrapped, gradients)

    def _gradients(self, trial: Trial, fit: Fit, by_rows: ByRows, by: BySite) -> dict[str, Any]:
        """Derivatives of the bound by every plain hyperparameter, nested as the model is."""
        model, state = trial.setting.model, self.state
        by_projection, by_loadings = trial.mixed.adjoint(
            trial.projection, by.design, by_rows.by_covariance
        )
        channels = self._by_channels(trial, fit, by_rows, by, by_loadings)
        by_chols = None
        if state.count:
            by_past = carried_adjoint(trial.said, trial.maps, by, trial.prior.sizes)
            channels = summed(channels, self._by_past(trial, by_past.linear, by_past.precision))
            by_chols = [
                solve_lower(chol, by_map, transpose=True)
                for chol, by_map in zip(state.prior.chols, by_past.maps, strict=True)
            ]
        by_latents = kernel_gradient(
            trial.prior, self.batch.x, trial.cross, trial.projection, by_projection, by_chols
        )
        return {"kernels": by_kernels(model, by_latents), "channels": channels}

    def _by_past(
        self,
        trial: Trial,
        by_linear: Float[np.ndarray, " S"],
        by_precision: Float[np.ndarray, "S S"],
    ) -> tuple[dict[str, Any], ...]:
        """Derivatives by the parameters of each channel, from what the past says."""
        model, reading = trial.setting.model, trial.reading
        by_strength, by_ratio = self.state.absorbed.adjoint(
            reading, self.state.sizes, by_linear, by_precision
        )
        found = []
        for d, channel in enumerate(model.channels):
            by_loadings = np.zeros(channel.loadings.shape)
            by_loadings[0] = by_ratio[d] * reading.per_loading[d]
            noise = channel.likelihood.strength_gradient(float(by_strength[d]))
            found.append({"likelihood": noise, **channel.by_loadings(by_loadings)})
        return tuple(found)

    def _by_channels(
        self,
        trial: Trial,
        fit: Fit,
        by_rows: ByRows,
        by_site: BySite,
        by_loadings: tuple[Float[np.ndarray, "_J Q"], ...],
    ) -> tuple[dict[str, Any], ...]:
        """Derivatives by the parameters of each channel, from the new rows."""
        model, batch, features, _ = trial.setting
        channels: list[dict[str, Any]] = [{"likelihood": {}} for _ in model.channels]
        for group, loadings in zip(batch.groups, by_loadings, strict=True):
            by = {**model.channels[group.channel].by_loadings(loadings)}
            channels[group.channel] = summed(channels[group.channel], by)
        for d, own in by_rows.by_likelihood.items():
            channels[d] = summed(channels[d], {"likelihood": own})
        by_precision = tuple(
            own + 0.5 * explained
            for own, explained in zip(by_site.row_precision, fit.marginals.explained, strict=True)
        )
        for group, likelihood, offset, by_p in of_groups(
            model, batch, features.offset, by_precision
        ):
            if likelihood.conjugate:
                by_b = by_site.row_linear[group.flat].reshape(-1, group.latents)
                slopes = counted(batch, group, by_b, by_p)
                more = likelihood.site_gradient(group.y, offset, *slopes)
                channels[group.channel] = summed(channels[group.channel], {"likelihood": more})
        return tuple(channels)

    def told(self, learned: Learned) -> Absorbed:
        """What the past said and what the batch said, under the kernels that were learned."""
        trial, state = learned.trial, self.state
        past = state.absorbed.read(trial.reading, state.sizes)
        past = past if trial.maps is None else past.through(trial.maps)
        rows = believable(trial.wrapped, trial.setting, learned.fit.rows, learned.fit.marginals)
        return past + absorbed(trial.setting, rows, trial.projection)


def _part_of_the_way(old: Channel, new: Channel, name: str, rate: float) -> Any:
    """A part of a channel between two places."""
    begin, end = (free_vector(getattr(channel, name)) for channel in (old, new))
    return with_free(getattr(new, name), begin + rate * (end - begin))
