"""The functional core over time: begin, step, filter, predict. Pure functions of a state."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.data.batch import Batch, Rows
from streamgp.inference import memory
from streamgp.inference.alternating import alternated
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bounds import expected_log_density
from streamgp.inference.components import Contributions, Parts, contributions
from streamgp.inference.e_step import (
    Fit,
    e_step,
    exact_sites,
    first_sites,
    fit_rows,
    no_sites,
    per_row,
)
from streamgp.inference.learner import unobserved
from streamgp.inference.m_step import maximise
from streamgp.inference.over_time.joining import limited
from streamgp.inference.over_time.kept import Kept
from streamgp.inference.over_time.objective import RowObjective
from streamgp.inference.over_time.state import Place, RowState, Whole, ended, following
from streamgp.inference.over_time.states import Around
from streamgp.inference.over_time.window import Window, seen
from streamgp.inference.posterior import Marginals
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.scoring import joined as joined_scores
from streamgp.inference.sites import RowSites, times
from streamgp.inference.state import Info
from streamgp.inference.trust import trusted
from streamgp.inference.vem import VEM, heard_with
from streamgp.inference.weight_uncertainty import spread_of_weights
from streamgp.model.composition import Composition
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, with_free

_FADED = 1e-9  # of an observation: a row that fades to less is dropped
_OPEN = 20  # rows that are not conjugate whose sites change as others come, the latest in time
_PASS = 8192  # rows that hyperparameters are learned from at one time
_STRETCHES = 4  # in which those of them lie that are not the latest
_ROUGH = 0.1  # nats: the gain below which E steps end where hyperparameters are only tried
_FOLLOWING = 10  # evaluations of an M step that only follows sites that have moved a little
_LITTLE = 1e-3  # nats: an M step ends where it gains no more


class Met(NamedTuple):
    """Rows that meet a state.

    Attributes:
        state: Before the rows.
        row: The number of the first kept row that the window has.
        kept: The rows of the window, new ones among them, sites as they were.
        is_new: Which of them are new.
        window: Their algebra.
    """

    state: RowState
    row: int
    kept: Kept
    is_new: np.ndarray
    window: Window

    @classmethod
    def of(cls, state: RowState, rows: Rows, row: int | None = None) -> "Met":
        """All rows that may change, from a row on; by default from the first that does."""
        if row is None:
            first = state.place_of(float(rows.x[:, 0].min())) if rows.size else state.size
            row = state.filter_before(first).row
        place = state.filter_before(row) if row else None
        before = None if place is None else place.filter
        kept, places = state.since(row).with_rows(rows)
        is_new = np.zeros(kept.size, bool)
        is_new[places] = True
        window = Window(state.world, kept.batch(state.plain), Around(before))
        return cls(state, row, kept, is_new, window)

    def some(self, most: int) -> "Met":
        """Some of all rows to learn from: the latest half of so many, and stretches of others.

        What a part of the rows says is told exactly, gaps between stretches included.
        """
        half, count = most // 2, self.kept.size - most // 2
        begins = np.linspace(0, count - half // _STRETCHES, _STRETCHES).astype(int)
        old = begins[:, None] + np.arange(half // _STRETCHES)
        which = np.unique(np.concatenate([np.ravel(old), np.arange(count, self.kept.size)]))
        kept = self.kept.take(which)
        window = dataclasses.replace(self.window, batch=kept.batch(self.state.plain))
        return self._replace(kept=kept, is_new=self.is_new[which], window=window)

    def under(self, wrapped: MultiTaskGP) -> "Met":
        """The same under other hyperparameters, if the window has all rows."""
        if wrapped is self.state.model:
            return self
        state = self.state.replace(model=wrapped)
        window = dataclasses.replace(self.window, world=state.world)
        return self._replace(state=state, window=window)


@dataclasses.dataclass(frozen=True)
class RowLearner:
    """How updates are made over time. See `Learner` for the settings.

    Args:
        learning: How hyperparameters are learned; None leaves them alone.
        e_rounds: The largest number of rounds of an E step.
        e_tolerance: The gain of the bound, in nats, below which an E step ends.
        weight_uncertainty: Whether predictions include what data leave open about mixing weights.
        keep: How many rows are kept before some are joined; None for all.
    """

    learning: VEM | None
    e_rounds: int
    e_tolerance: float
    weight_uncertainty: bool
    keep: int | None = None

    cost_grows: ClassVar[bool] = True
    parts_follow_time: ClassVar[bool] = True
    can_filter: ClassVar[bool] = True
    samples_together: ClassVar[int] = 4096
    # Where noise is less than that part of the data's spread, rounding would take over.
    least_noise: ClassVar[float] = 1e-4

    def with_rule(self, rule: VEM | None) -> "RowLearner":
        """The same with another rule of learning."""
        return dataclasses.replace(self, learning=rule)

    def begin(self, model: MultiTaskGP, columns: int) -> RowState:
        """The state before any data."""
        return RowState(model, (), np.zeros(len(model.channels)))

    def tempered(self, state: RowState, part: float) -> RowState:
        """The state with that part of all it was told: the prior's part is untouched.

        Rows that have next to no say are gone.
        """
        kept = state.kept.scaled(part)
        kept = kept.take(kept.count > _FADED)
        whole = ended(state.world, Place(0, None), kept, _OPEN)
        return following(state, 0, kept, whole, heard=part * state.heard)

    # -- learning ----------------------------------------------------------------------------------

    def step(
        self,
        state: RowState,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
        remember: bool | None = None,
    ) -> tuple[RowState, Info]:
        """Fold rows in; with `learn`, and a rule of learning, hyperparameters as well.

        Args:
            state: What is known before.
            rows: The new observations. If there are none, hyperparameters are learned from those
                that are kept.
            start: The hyperparameters to begin from, if not the state's own.
            learn: Whether hyperparameters may be learned.
            remember: Not needed: rows are kept.

        Returns:
            What is known after, and what happened.
        """
        rule = self.learning if learn else None
        if rule is None and (start is None or start is state.model):
            if self._ready(state, rows) == rows.size > 0:
                after, bound, before = self._filtered(state, rows)
                before = before if rows.size == 1 else self.scored(state, rows)
                work = 0, 0
            else:
                before = self.scored(state, rows) if rows.size else Scored.none()
                after, bound, rounds = self._folded(Met.of(state, rows))
                work = rounds, 0
        else:
            before = self.scored(state, rows) if rows.size else Scored.none()
            met = Met.of(state, rows, 0).under(start or state.model)
            met, fit, work = self._learned(met, rule)
            after = self._after(met, met.kept if fit is None else _kept(met, fit))
            bound = self._total(met, fit) - self._total_of(state)
        after = limited(after, self.keep, _OPEN)
        finite = after.is_finite(state) and bool(np.isfinite(bound))
        return after, Info(bound, before, *work, finite)

    def trying(self, state: RowState, rows: Rows, start: MultiTaskGP) -> tuple[MultiTaskGP, float]:
        """The hyperparameters that a step learns from there, and its bound, up to a constant.

        E steps end early, as it is whole nats that tell good starts from poor ones.
        """
        rough = dataclasses.replace(self, e_tolerance=max(self.e_tolerance, _ROUGH))
        met = Met.of(state, rows, 0).under(start)
        met, fit, _ = rough._learned(met, self.learning)
        return met.state.model, self._total(met, fit)

    def revised(
        self,
        before: RowState,
        streamed: RowState,
        rows: Rows,
        parts: Iterable[Rows],
        *,
        remember: bool,
    ) -> None:
        """Nothing: parts follow one another in time, so that each sees all that came before it."""

    def filter_scored(self, state: RowState, rows: Rows) -> tuple[RowState, Scored]:
        """Fold rows in one by one, in order, at fixed hyperparameters.

        Returns:
            The state as after that many steps of one row each, and the scores of each row before
            it was learned.
        """
        found, done = [], 0
        while done < rows.size:
            rest = rows.take(slice(done, None))
            ready = self._ready(state, rest)
            if ready:
                state, _, own = self._filtered(state, rest.take(slice(ready)))
            else:
                state, info = self.step(state, rest.take(slice(1)), learn=False)
                own = info.scored
            found.append(own)
            done += len(own.table)
        state = limited(state, self.keep, _OPEN)
        return state, joined_scores(found)

    def _ready(self, state: RowState, rows: Rows) -> int:
        """How many of the first rows follow all that are kept, and one another, in time."""
        if not state.plain.conjugate or state.closed < state.size:
            return 0
        time = rows.x[:, 0]
        latest = state.blocks[-1].time[-1] if state.blocks else -np.inf
        is_late = np.diff(time, prepend=latest) < 0
        return int(np.argmax(is_late)) if is_late.any() else rows.size

    def _filtered(self, state: RowState, rows: Rows) -> tuple[RowState, float, Scored]:
        """Conjugate rows that follow all others in time: the filter goes on.

        Returns:
            The state after them, the gain of the bound, and their scores, each before it was
            learned.
        """
        kept = Kept.none(state.plain).like(rows)
        batch = state.model.batch(rows)
        window = Window(state.world, batch, Around(state.end))
        sites = exact_sites(window, no_sites(window))
        end, (mean, variance, density) = state.world.states.filtered(
            window.scalars(sites), state.end
        )
        mean = window.features.offset + mean[batch.order]
        spread = (variance[batch.order][:, None, None],)
        own = scored(state.plain, batch, Marginals(mean, spread, mean, spread))
        whole = Whole(state.size + rows.size, end)
        after = following(state, state.size, kept, whole, heard=heard_with(state.heard, batch))
        return after, float(np.sum(density)) + _beside(window, sites), own

    def _folded(self, met: Met) -> tuple[RowState, float, int]:
        """The state with rows at fixed hyperparameters, what the bound gains, and rounds."""
        if met.state.plain.conjugate:
            after = self._after(met, met.kept)
            return after, self._total(met, None) - _conjugate_total(met.window, _old(met)), 0
        rows = self._first_sites(met)
        fit, rounds = e_step(met.window, rows, rounds=self.e_rounds, tolerance=self.e_tolerance)
        known = 0.0
        if not met.is_new.all():
            known = _fit_of(met, _old(met)).bound
        return self._after(met, _kept(met, fit)), fit.bound - known, rounds

    def _learned(self, met: Met, rule: VEM | None) -> tuple[Met, Fit | None, tuple[int, int]]:
        """Hyperparameters from all rows, and the sites of rows that are not conjugate."""
        if rule is not None and met.kept.size > _PASS:
            some, _, work = self._learned(met.some(_PASS), rule)
            met = met.under(some.state.model)
            if met.state.plain.conjugate:
                return met, None, work
            fit, rounds = self._e(met, self._first_sites(met), self.e_tolerance)
            return met, fit, (work[0] + rounds, work[1])
        if met.state.plain.conjugate:
            evaluations = 0
            if rule is not None:
                met, evaluations = self._m(met, None, rule.evaluations)
            return met, None, (0, evaluations)
        each = [] if rule is None else [rule.evaluations] * rule.rounds
        each[1:] = [min(most, _FOLLOWING) for most in each[1:]]
        steps = _Steps(self, met.window.batch)
        found, fit, rounds, count = alternated(steps, met, self._first_sites(met), each)
        return found, fit, (rounds, count)

    def _e(self, met: Met, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        return e_step(met.window, rows, rounds=self.e_rounds, tolerance=tolerance)

    def _m(self, met: Met, fit: Fit | None, evaluations: int) -> tuple[Met, int]:
        """Hyperparameters from all rows, their sites held."""
        wrapped, batch = met.state.model, met.window.batch
        beliefs = _beliefs(met)
        held, at_rows = met.kept.sites(batch), None
        if fit is not None:
            at_rows = fit.marginals
            held = trusted(wrapped, met.window, fit.rows, at_rows, most=1.0)
        objective = RowObjective(wrapped, met.window, held, beliefs, at_rows)
        gain = _LITTLE / beliefs.size
        best, count = maximise(objective, free_vector(wrapped), evaluations=evaluations, gain=gain)
        return met.under(with_free(wrapped, best)), count

    def _first_sites(self, met: Met) -> RowSites:
        """The sites that rows begin with: their own if they are kept, else by what these say."""
        window, batch = met.window, met.window.batch
        held = met.kept.sites(batch)
        if met.is_new.all() and not met.row:
            return first_sites(window)
        known = exact_sites(window, held)
        _, before = window.conditioned(known)
        pull, precision = per_row(
            lambda c, *row: c.first_site(*row), window.model, batch, before.mean, before.covariance
        )
        linear = pull + times(batch, precision, before.centred)
        is_new = met.is_new[batch.order]
        for group in batch.groups:
            stays = ~is_new[group.rows]
            own = precision[group.run][group.within]
            own[stays] = known.precision[group.run][group.within][stays]
            flat = np.repeat(stays, group.latents)
            linear[group.flat][flat] = known.linear[group.flat][flat]
        return RowSites(linear, precision)

    def _after(self, met: Met, kept: Kept) -> RowState:
        """The state with the rows of a window as they are now."""
        state = met.state
        place = state.filter_before(met.row)._replace(row=met.row, filter=met.window.around.before)
        whole = ended(state.world, place, kept, _OPEN)
        heard = state.heard + np.bincount(met.kept.channel[met.is_new], minlength=len(state.heard))
        return following(state, met.row, kept, whole, heard=heard)

    def _total(self, met: Met, fit: Fit | None) -> float:
        """The bound of a window's rows."""
        if fit is not None:
            return fit.bound
        return _conjugate_total(met.window, met.kept)

    def _total_of(self, state: RowState) -> float:
        """The bound of all kept rows."""
        if not state.size:
            return 0.0
        met = Met.of(state, _NO_ROWS, 0)
        if state.plain.conjugate:
            return _conjugate_total(met.window, met.kept)
        return _fit_of(met, met.kept).bound

    # -- reading -----------------------------------------------------------------------------------

    def predict(
        self, state: RowState, x: Float[np.ndarray, "N P"], channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters f of a channel at each input."""
        return self._read(state, x, channel, open_weights=self.weight_uncertainty)

    def outlook(
        self, state: RowState, channel: int, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """As `predict`, without what data leave open about mixing weights, as rows are scored."""
        return self._read(state, x, channel, open_weights=False)

    def _read(
        self, state: RowState, x: Float[np.ndarray, "N P"], channel: int, *, open_weights: bool
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        latents = state.plain.channels[channel].likelihood.latents
        if not len(x):
            return np.zeros((0, latents)), np.zeros((0, latents, latents))
        batch = unobserved(state.plain, x, channel)
        if open_weights and (own := state.open_weights[channel]).any():
            at = state.states_at(x[:, 0])
            mean, (covariance,) = seen(batch, state.world.design(batch), at)
            mean = mean + Window(state.world, batch).features.offset
            means = _latent_means(state, x, at.mean)
            covariance = covariance + np.einsum("nq,jqkr,nr->njk", means, own, means)
        else:
            found = state.marginals(batch)
            mean, (covariance,) = found.mean, found.covariance
        return mean.reshape(len(x), latents), covariance

    def predict_joint(
        self, state: RowState, x: Float[np.ndarray, "N P"], channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """q(f) of several channels at all inputs together.

        Returns:
            Mean and covariance of R numbers: channel after channel, input after input, latent
            parameter after latent parameter.
        """
        if not len(x):
            return np.zeros(0), np.zeros((0, 0))
        mean, covariance = state.joint([unobserved(state.plain, x, d) for d in channels])
        if self.weight_uncertainty:
            latents = self.latent_means(state, x)
            own = [state.open_weights[channel] for channel in channels]
            covariance = covariance + block_diag(*(spread_of_weights(latents, w) for w in own))
        return mean, covariance

    def components(
        self, state: RowState, x: Float[np.ndarray, "N P"], composition: Composition
    ) -> Contributions:
        """Mean and covariance of the components of a channel at each input."""
        open_weights = state.open_weights[composition.channel] if self.weight_uncertainty else None
        at, weights = state.states_at(x[:, 0]), state.plain.basis_spreads().size
        counts = [len(kernel.state_space() or ()) for kernel in composition.summands]
        owner = tuple(np.repeat(np.arange(len(counts)), counts).tolist())
        readouts = state.world.states.readouts(x[:, 0], owner, len(counts))
        last = slice(state.world.states.size - weights, None)
        bent = readouts @ at.covariance
        parts = Parts(
            mean=(readouts @ at.mean[:, :, None])[:, :, 0],
            covariance=bent @ np.swapaxes(readouts, 1, 2),
            across=bent[:, :, last],
            weights=at.mean[0, last],
            weights_covariance=at.covariance[0, last, last],
        )
        return contributions(state.plain, composition, x, parts, open_weights)

    def latent_means(
        self, state: RowState, x: Float[np.ndarray, "N P"]
    ) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""
        return _latent_means(state, x, state.states_at(x[:, 0]).mean)

    def told(self, state: RowState, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""
        return evidence_of(state).evidence(free_vector(model))

    def scored(self, state: RowState, rows: Rows) -> Scored:
        """The scores of each row, nothing learned."""
        batch = state.model.batch(rows)
        return scored(state.plain, batch, state.marginals(batch))


def evidence_of(state: RowState) -> RowObjective:
    """What all kept rows say of hyperparameters."""
    met = Met.of(state, _NO_ROWS, 0)
    fit = None if state.plain.conjugate else _fit_of(met, met.kept)
    held = met.kept.sites(met.window.batch) if fit is None else fit.rows
    at_rows = None if fit is None else fit.marginals
    return RowObjective(state.model, met.window, held, _beliefs(met), at_rows)


class _Steps(NamedTuple):
    """E and M steps over rows that meet a state, for `alternated`."""

    learner: RowLearner
    batch: Batch

    @property
    def tolerance(self) -> float:
        return self.learner.e_tolerance

    def e(self, met: Met, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        return self.learner._e(met, rows, tolerance)

    def m(self, met: Met, fit: Fit, evaluations: int) -> tuple[Met, int]:
        return self.learner._m(met, fit, evaluations)

    def worth(self, met: Met, fit: Fit) -> float:
        return fit.bound + _beliefs(met).value(free_vector(met.state.model))


_NO_ROWS = Rows(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, int))


def _beliefs(met: Met) -> Beliefs:
    wrapped, heard = met.state.model, met.state.heard.copy()
    heard += np.bincount(met.kept.channel[met.is_new], minlength=len(heard))
    nothing = memory.blank(wrapped)
    return Beliefs.of(wrapped, wrapped, nothing, heard, new=float(np.sum(heard)), past=0.0)


def _kept(met: Met, fit: Fit) -> Kept:
    """The rows of a window with the sites of a fit."""
    return met.kept.with_sites(met.state.plain, met.window.batch, fit.rows)


def _old(met: Met) -> Kept:
    """The rows of a window that were there before."""
    return met.kept.take(~met.is_new)


def _fit_of(met: Met, kept: Kept) -> Fit:
    """Some rows of a window by themselves, with their sites as they are."""
    window = dataclasses.replace(met.window, batch=kept.batch(met.state.plain))
    return fit_rows(window, exact_sites(window, kept.sites(window.batch)))


def _conjugate_total(window: Window, kept: Kept) -> float:
    """The log evidence of rows of conjugate channels, given all before them."""
    if not kept.size:
        return 0.0
    own = dataclasses.replace(window, batch=kept.batch(window.model))
    sites = exact_sites(own, kept.sites(own.batch))
    told = own.scalars(sites)
    _, (_, _, density) = window.world.states.filtered(told, window.around.before)
    return float(np.sum(density)) + _beside(own, sites)


def _beside(window: Window, sites: RowSites) -> float:
    """What conjugate rows say that does not depend on f: at the top of their sites, all of it."""
    batch, total = window.batch, 0.0
    precision = np.concatenate([own[:, 0, 0] for own in sites.precision])
    top = window.features.offset + sites.linear / precision
    at_top = Marginals(top, tuple(np.zeros((len(own), 1, 1)) for own in sites.precision), top, ())
    total = expected_log_density(window.model, batch, at_top)
    return total + 0.5 * float(np.sum(np.log(2 * np.pi / precision)))


def _latent_means(
    state: RowState, x: Float[np.ndarray, "N P"], mean: Float[np.ndarray, "N d"]
) -> Float[np.ndarray, "N Q"]:
    law = state.world.law
    readouts = state.world.states.readouts(x[:, 0], law.latent, law.latents)
    return (readouts @ mean[:, :, None])[:, :, 0]
