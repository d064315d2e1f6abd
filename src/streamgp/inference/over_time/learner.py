"""The functional core over time: begin, step, filter, predict. Pure functions of a state."""

import dataclasses
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference.e_step import Fit, e_step, exact_sites, no_sites
from streamgp.inference.kept import Kept
from streamgp.inference.m_step import maximise
from streamgp.inference.on_rows import LearnerOnRows, faded
from streamgp.inference.over_time.following import Whole, ended, following
from streamgp.inference.over_time.joining import limited
from streamgp.inference.over_time.meeting import NO_ROWS, Met, beside, evidence_of
from streamgp.inference.over_time.objective import RowObjective
from streamgp.inference.over_time.state import Place, RowState
from streamgp.inference.over_time.states import Around
from streamgp.inference.over_time.window import Window
from streamgp.inference.pace import Pace
from streamgp.inference.posterior import Marginals
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.scoring import joined as joined_scores
from streamgp.inference.sites import RowSites
from streamgp.inference.vem import VEM, Info, heard_with
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, with_free

_MANY = 20_000  # rows that are kept
_OPEN = 20  # rows that are not conjugate whose sites change as others come, the latest in time
_PASS = 8192  # rows that hyperparameters are learned from at one time
_ROUGH = 0.1  # nats: the gain below which E steps end where hyperparameters are only tried
_LITTLE = 1e-3  # nats: an M step ends where it gains no more


@dataclasses.dataclass(frozen=True)
class RowLearner(LearnerOnRows):
    """How updates are made over time. See `LearnerOnRows`."""

    pace: ClassVar[Pace] = Pace(
        rows=8192,  # of which a pass of the filter with its gradient takes some ten milliseconds
        samples=4096,  # half of that, as samples wait for one another
        racing=1024,  # some cycles of what is slow, and many of what is fast
        comparing=6,  # starts are judged by the latest rows, these by all
        brief=4,  # M steps come often, and go on from where the last one ended
        in_time=True,
    )

    def begin(self, model: MultiTaskGP, columns: int) -> RowState:
        """The state before any data."""
        return RowState(model, (), np.zeros(len(model.channels)))

    def suitable(self, state: RowState) -> int:
        """As many as a filter reads in some hundredths of a second; their file has a megabyte."""
        return _MANY

    def tempered(self, state: RowState, part: float) -> RowState:
        """The state with that part of all it was told: the prior's part is untouched.

        Rows that have next to no say are gone.
        """
        kept, _ = faded(state.kept, part)
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
    ) -> tuple[RowState, Info]:
        """Fold rows in; with `learn`, and a rule of learning, hyperparameters as well.

        Args:
            state: What is known before.
            rows: The new observations. If there are none, hyperparameters are learned from those
                that are kept.
            start: The hyperparameters to begin from, if not the state's own.
            learn: Whether hyperparameters may be learned.

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
            after = self._after(met, met.kept if fit is None else met.with_sites(fit))
            bound = _bound(met, fit) - Met.of(state, NO_ROWS, 0).bound_of(state.kept)
        after = limited(after, self.limit(after), _OPEN)
        finite = after.is_finite(state) and bool(np.isfinite(bound))
        return after, Info(bound, before, *work, finite)

    def trying(self, state: RowState, rows: Rows, start: MultiTaskGP) -> tuple[MultiTaskGP, float]:
        """The hyperparameters that a step learns from there, and its bound, up to a constant.

        E steps end early, as it is whole nats that tell good starts from poor ones.
        """
        rough = dataclasses.replace(self, e_tolerance=max(self.e_tolerance, _ROUGH))
        met = Met.of(state, rows, 0).under(start)
        met, fit, _ = rough._learned(met, self.learning)
        return met.state.model, _bound(met, fit)

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
        state = limited(state, self.limit(state), _OPEN)
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
        return after, float(np.sum(density)) + beside(window, sites), own

    def _folded(self, met: Met) -> tuple[RowState, float, int]:
        """The state with rows at fixed hyperparameters, what the bound gains, and rounds."""
        if met.state.plain.conjugate:
            gain = met.bound_of(met.kept) - met.bound_of(met.old)
            return self._after(met, met.kept), gain, 0
        rows = met.first_sites()
        fit, rounds = e_step(met.window, rows, rounds=self.e_rounds, tolerance=self.e_tolerance)
        return self._after(met, met.with_sites(fit)), fit.bound - met.bound_of(met.old), rounds

    def _learned(self, met: Met, rule: VEM | None) -> tuple[Met, Fit | None, tuple[int, int]]:
        """Hyperparameters from all rows, and the sites of rows that are not conjugate."""
        if rule is not None and met.kept.size > _PASS:
            some, _, work = self._learned(met.some(_PASS), rule)
            met = met.under(some.state.model)
            if met.state.plain.conjugate:
                return met, None, work
            fit, rounds = self.e(met, met.first_sites(), self.e_tolerance)
            return met, fit, (work[0] + rounds, work[1])
        if met.state.plain.conjugate:
            evaluations = 0
            if rule is not None:
                met, evaluations = self.m(met, None, rule.evaluations)
            return met, None, (0, evaluations)
        found, fit, rounds, count = self.alternated(self, met, rule)
        return found, fit, (rounds, count)

    def e(self, met: Met, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""
        return e_step(met.window, rows, rounds=self.e_rounds, tolerance=tolerance)

    def m(self, met: Met, fit: Fit | None, evaluations: int) -> tuple[Met, int]:
        """Hyperparameters from all rows, their sites held."""
        wrapped, batch = met.state.model, met.window.batch
        beliefs = met.beliefs()
        held, at_rows = met.kept.sites(batch), None
        if fit is not None:
            held, at_rows = fit.rows, fit.marginals
        objective = RowObjective(wrapped, met.window, held, beliefs, at_rows)
        gain = _LITTLE / beliefs.size
        start = free_vector(wrapped)
        best, count, _ = maximise(objective, start, evaluations=evaluations, gain=gain)
        return met.under(with_free(wrapped, best)), count

    def worth(self, met: Met, fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""
        return fit.bound + met.beliefs().value(free_vector(met.state.model))

    def _after(self, met: Met, kept: Kept) -> RowState:
        """The state with the rows of a window as they are now."""
        state = met.state
        place = state.filter_before(met.row)._replace(row=met.row, filter=met.window.around.before)
        whole = ended(state.world, place, kept, _OPEN)
        return following(state, met.row, kept, whole, heard=met.heard)

    def told(self, state: RowState, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""
        return evidence_of(state).evidence(free_vector(model))


def _bound(met: Met, fit: Fit | None) -> float:
    """The bound of a window's rows; with normal noise there is no fit."""
    return met.bound_of(met.kept) if fit is None else fit.bound
