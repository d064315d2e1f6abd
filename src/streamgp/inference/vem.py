"""Learning: what one update does with its batch.

Alternates E and M steps on the continual bound, and returns what is kept of the batch.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference import memory
from streamgp.inference.alternating import alternated
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bound_gradient import (
    ByRows,
    BySite,
    adjoint,
    by_kernels,
    carried_adjoint,
    kernel_gradient,
    summed,
)
from streamgp.inference.cells import Cells
from streamgp.inference.e_step import (
    DenseSetting,
    Fit,
    e_step,
    exact_sites,
    first_sites,
    fit_rows,
)
from streamgp.inference.kernel_memory import expand_kernels
from streamgp.inference.likelihood_memory import expand_likelihoods, needs_memory
from streamgp.inference.m_step import maximise
from streamgp.inference.memory import Memory, Vector
from streamgp.inference.past import Past, Said, add
from streamgp.inference.prior import Factors, Prior
from streamgp.inference.reading import Reading, by_channels
from streamgp.inference.seen_cells import SeenCells
from streamgp.inference.sites import RowSites, Site, through
from streamgp.inference.state import State
from streamgp.inference.trust import trusted
from streamgp.model.mixing import Mixed, Projection, basis_design
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import (
    free_gradient,
    free_vector,
    unwrap,
    with_free,
)
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class VEM:
    """Variational EM: how hyperparameters are learned.

    Args:
        rounds: How often E and M step alternate. One is enough when every channel is conjugate:
            the bound is then collapsed.
        evaluations: How often an M step may evaluate the bound and its gradient.
        every: Hyperparameters are learned once that many observations have come since they last
            were, sooner while there are few. Where there are cells, a long stream waits until a
            tenth of it is new. On a chain, a tenth of `every` is enough, and a long stream waits
            until a fiftieth of it is new, a very long one until a tenth is.
        cells: The number of local averages in which the dense engine also keeps past rows, so that
            kernels and inducing points that are learned later can be applied to the past. There are
            more of them if every channel would have fewer than four for each inducing point. There
            may be 1.4 times as many before some are joined, and until then a cell is a single row.
            0 keeps none. Models of more than four channels have none, and chains need none.
    """

    rounds: int = 2
    evaluations: int = 40
    every: int = 100
    cells: int = 1024


class Options(NamedTuple):
    """How E steps are made."""

    e_rounds: int
    e_tolerance: float


class Trial(NamedTuple):
    """A choice of hyperparameters, and all that it implies for a batch before its own sites."""

    wrapped: MultiTaskGP
    setting: DenseSetting
    prior: Prior
    cross: tuple[Float[np.ndarray, "_ N"], ...]
    projection: Projection
    mixed: Mixed
    reading: Reading
    past: Past
    said: Site  # by the past, before it is mapped
    maps: Factors | None  # C: v under the state's prior is C·v under this one; None for identity
    seen: SeenCells | None  # the cells that the past comes from, under this prior


class Learned(NamedTuple):
    """The result of learning: hyperparameters (wrapped), the fit, and counts of the work."""

    trial: Trial
    fit: Fit
    e_rounds: int
    m_evaluations: int


def heard_with(heard: Float[np.ndarray, " D"], batch: Batch) -> Float[np.ndarray, " D"]:
    """The observations of each channel, those of a batch included."""
    heard = heard.copy()
    for group in batch.groups:
        heard[group.channel] += len(group.y)
    return heard


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
        reading = state.reading if same else Reading.of(model)
        past, maps = state.past, None
        if same or self._has_same_kernels(wrapped):
            prior, cross, projection = state.prior, self._cross, self._projection
            seen = self._seen(prior)
        else:
            prior = Prior.of(model, state.points)
            cross = prior.cross(batch.x)
            projection = prior.project(batch.x, cross)
            seen = self._seen(prior)
            if seen is None:
                maps = tuple(map(solve_lower, state.prior.chols, prior.chols))
            else:
                past = seen.past(model)
        said = state.site if same else reading.site(past)
        carried = said if maps is None else through(said, maps)
        mixed = Mixed.of(model, batch, self._basis)
        setting = DenseSetting(model, batch, mixed.features(projection), carried)
        return Trial(
            wrapped, setting, prior, cross, projection, mixed, reading, past, said, maps, seen
        )

    def _seen(self, prior: Prior) -> SeenCells | None:
        """The past's cells through the features of a prior; None if there are none."""
        if not self.state.has_cells:
            return None
        assert self.state.cells is not None
        return SeenCells(self.state.cells, self._cell_batch, prior, self.state.energy_left)

    @functools.cached_property
    def _cell_batch(self) -> Batch:
        assert self.state.cells is not None
        return self.state.cells.batch(self.state.plain)

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
        return Learned(*alternated(self, trial, rows, each))

    @property
    def tolerance(self) -> float:
        """The gain of the bound, in nats, below which an E step ends."""
        return self.options.e_tolerance

    def e(self, trial: Trial, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""
        return e_step(trial.setting, rows, rounds=self.options.e_rounds, tolerance=tolerance)

    def m(self, trial: Trial, fit: Fit, evaluations: int) -> tuple[Trial, int]:
        """Hyperparameters that a fit thinks better. It asks for nothing: it evaluates by itself."""
        return self._m(trial, fit.rows, evaluations)

    def worth(self, trial: Trial, fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""
        believed = self._beliefs(trial.wrapped).value(free_vector(trial.wrapped))
        return fit.bound + trial.reading.beside(trial.past) + believed

    def _m(self, trial: Trial, rows: RowSites, evaluations: int) -> tuple[Trial, int]:
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
            evaluations=evaluations,
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
        self, trial: Trial, held: RowSites, theta: Vector, beliefs: Beliefs
    ) -> tuple[float, Vector]:
        return beliefs.objective(theta, *self.bound(trial, held))

    def _beliefs(self, wrapped: MultiTaskGP) -> Beliefs:
        state = self.state
        return Beliefs.of(
            wrapped, state.model, state.memory, self.heard, new=self._size, past=state.count
        )

    @property
    def _size(self) -> float:
        """The observations that the bound follows as kernels move."""
        return self.batch.size + (self.state.count if self.state.has_cells else 0.0)

    @functools.cached_property
    def heard(self) -> Float[np.ndarray, " D"]:
        """The observations of each channel, past and new."""
        return heard_with(self.state.heard, self.batch)

    def bound(self, trial: Trial, held: RowSites) -> tuple[float, Float[np.ndarray, " T"]]:
        """The bound with the rows' sites held, and its gradient by the free vector.

        What the past says of weights and noises beside its site is part of it.
        """
        fit, by_rows, by = adjoint(trial.setting, held)
        gradients = self._gradients(trial, fit, by_rows, by)
        value = fit.bound + trial.reading.beside(trial.past)
        return value, free_gradient(trial.wrapped, gradients)

    def _gradients(self, trial: Trial, fit: Fit, by_rows: ByRows, by: BySite) -> dict[str, Any]:
        """Derivatives of the bound by every plain hyperparameter, nested as the model is."""
        model, state = trial.setting.model, self.state
        by_projection, by_loadings = trial.mixed.adjoint(
            trial.projection, by.design, by_rows.by_covariance
        )
        channels = self._by_channels(trial, fit, by_rows, by, by_loadings)
        by_chols = by_past = None
        if state.count:
            by_past = carried_adjoint(trial.said, trial.maps, by, trial.prior.sizes)
            by_reading = trial.reading.adjoint(trial.past, by_past.linear, by_past.precision)
            channels = summed(channels, tuple(by_channels(model, by_reading)))
            if trial.seen is None:
                by_chols = [
                    solve_lower(chol, by_map, transpose=True)
                    for chol, by_map in zip(state.prior.chols, by_past.maps, strict=True)
                ]
        by_latents = kernel_gradient(
            trial.prior, self.batch.x, trial.cross, trial.projection, by_projection, by_chols
        )
        if trial.seen is not None and by_past is not None:
            by_cells = trial.seen.by_projection(model, by_past.linear, by_past.precision)
            by_latents = [*map(summed, by_latents, trial.seen.by_kernels(by_cells))]
        return {"kernels": by_kernels(model, by_latents), "channels": channels}

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
            by = channels[group.channel]
            by.update(model.channels[group.channel].by_loadings(loadings))
            by["likelihood"] = dict(by_rows.by_likelihood[group.channel])
        by_precision = tuple(
            own + 0.5 * explained
            for own, explained in zip(by_site.row_precision, fit.marginals.explained, strict=True)
        )
        for group, likelihood, offset, by_p in of_groups(
            model, batch, features.offset, by_precision
        ):
            if likelihood.conjugate:
                by_b = by_site.row_linear[group.flat].reshape(-1, group.latents)
                by = channels[group.channel]
                by["likelihood"] = summed(
                    by["likelihood"], likelihood.site_gradient(group.y, offset, by_b, by_p)
                )
        return tuple(channels)

    def told(self, learned: Learned) -> tuple[Past, Cells | None]:
        """What the past said and what the batch said, under the kernels that were learned."""
        trial, fit = learned.trial, learned.fit
        past, cells = trial.past, self.state.cells
        past = past.copy() if trial.maps is None else past.through(trial.maps)
        basis = trial.setting.model.basis(self.batch)
        rows = trusted(trial.wrapped, trial.setting, fit.rows, fit.marginals)
        said = Said(trial.setting, rows, trial.projection, basis)
        add(past, said)
        return past, cells and cells.with_rows(said)

    def remembered(self, learned: Learned, *, kernels: bool) -> Memory:
        """The state's memory with the batch's: how its expected log-density depends on θ.

        q(u) is held fixed. For the `kernels`, this is worth its cost only if a whole batch is
        learned.
        """
        trial, fit = learned.trial, learned.fit
        past = self.state.memory.recentred(trial.wrapped, self.state.model)
        if not kernels and not needs_memory(trial.wrapped):
            return past
        of_kernels = memory.blank(trial.wrapped.kernels)
        if kernels and self.state.cells is None:  # cells tell it of any kernels
            of_kernels = expand_kernels(
                trial.wrapped, trial.setting, trial.prior, trial.mixed, fit.posterior
            )
        of_likelihoods = expand_likelihoods(trial.wrapped, trial.setting, fit.marginals)
        return past + memory.joined(of_kernels, of_likelihoods)
