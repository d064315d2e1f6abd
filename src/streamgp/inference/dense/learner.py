"""The functional core on rows over any inputs: begin, step, filter, predict. No inducing points."""

import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference.dense.joining import limited
from streamgp.inference.dense.objective import Objective
from streamgp.inference.dense.state import DenseState
from streamgp.inference.dense.whole import Whole, first_of, left_open
from streamgp.inference.e_step import Fit, e_step, exact_sites, fit_rows
from streamgp.inference.in_order import InOrder
from streamgp.inference.kept import Kept, joined
from streamgp.inference.m_step import maximise
from streamgp.inference.on_rows import LearnerOnRows, faded
from streamgp.inference.pace import Pace
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.scoring import joined as joined_scores
from streamgp.inference.sites import RowSites
from streamgp.inference.vem import VEM, Info, heard_with
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, with_free

_EACH, _FEWEST, _MOST = 256, 512, 1024  # rows that are kept: per input and channel, and in all
_ROUGH = 0.1  # nats: the gain below which E steps end where hyperparameters are only tried
_LITTLE = 0.1  # nats: an M step ends where it gains no more


@dataclasses.dataclass(frozen=True)
class DenseLearner(LearnerOnRows):
    """How updates are made on rows over any inputs. See `LearnerOnRows`."""

    pace: ClassVar[Pace] = Pace(
        rows=512,  # with a thousand kept ones they are factorised at once
        samples=1024,  # as many as rows are kept
        racing=320,  # a start is judged in a tenth of the time that all rows take
        comparing=1,  # a start has been learned from these rows before
        brief=20,  # an M step seldom takes more, as it knows how its objective bends
        growth=1.25,  # at 1.5, tables ended .01 to .02 nats worse
    )

    def begin(self, model: MultiTaskGP, columns: int) -> DenseState:
        """The state before any data."""
        none = Kept.none(model, columns)
        return DenseState(model, (none,), np.zeros(len(model.channels)))

    def suitable(self, state: DenseState) -> int:
        """As many rows as inputs and channels need, and a Cholesky factorisation takes in a blink.

        Over two inputs half as many tell a function as well, and single updates are faster.
        """
        wanted = _EACH * state.kept.x.shape[1] * len(state.model.channels)
        return min(max(wanted, _FEWEST), _MOST)

    def tempered(self, state: DenseState, part: float) -> DenseState:
        """The state with that part of all it was told: the prior's part is untouched."""
        kept, stays = faded(state.kept, part)
        closed = int(np.count_nonzero(stays[: state.closed]))
        return state.following(kept, closed, heard=part * state.heard)

    # -- learning ----------------------------------------------------------------------------------

    def step(
        self,
        state: DenseState,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
    ) -> tuple[DenseState, Info]:
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
            after, bound, before, rounds = self._folded(state, rows)
            work = rounds, 0
        else:
            before = self.scored(state, rows) if rows.size else Scored.none()
            begun = Whole.of(state, rows, start or state.model)
            found = self._learned(begun, rule)
            after, work = found.whole.state(found.rows), found.work
            bound = found.bound - Whole.of(state, rows.take(slice(0)), state.model).known()[1]
        after = limited(after, self.limit(after))
        finite = after.is_finite(state) and bool(np.isfinite(bound))
        return after, Info(bound, before, *work, finite)

    def trying(
        self, state: DenseState, rows: Rows, start: MultiTaskGP
    ) -> tuple[MultiTaskGP, float]:
        """The hyperparameters that a step learns from there, and its bound, up to a constant.

        E steps end early, as it is whole nats that tell good starts from poor ones.
        """
        rough = dataclasses.replace(self, e_tolerance=max(self.e_tolerance, _ROUGH))
        found = rough._learned(Whole.of(state, rows, start), self.learning)
        return found.whole.wrapped, found.bound

    def _folded(self, state: DenseState, rows: Rows) -> tuple[DenseState, float, Scored, int]:
        """Rows at fixed hyperparameters: the state, the gain of the bound, scores and rounds."""
        model = state.plain
        new = Kept.none(model, rows.x.shape[1]).like(rows)
        open_rows = state.kept.take(slice(state.closed, None))
        kept = joined([open_rows, new])
        joint = state.meeting(kept.batch(model), state.closed_factor)
        if state.closed == state.size:
            own = joint.batch
            before = scored(model, own, joint.prior())
        else:
            before = self.scored(state, rows)
        held = first_of(joint, kept, open_rows.size)
        fit, rounds = e_step(joint, held, rounds=self.e_rounds, tolerance=self.e_tolerance)
        kept = kept.with_sites(model, joint.batch, fit.rows)
        gain = fit.bound
        if open_rows.size:
            old = state.meeting(open_rows.batch(model), state.closed_factor)
            gain -= fit_rows(old, exact_sites(old, open_rows.sites(old.batch))).bound
        closing = kept.size - left_open(model, kept)
        if closing == kept.size:
            factor = state.closed_factor.appended(*joint.observed(fit.rows))
        else:
            factor = state.closed_factor.appended(*state.scalars(kept.take(slice(closing))))
        heard = heard_with(state.heard, model.batch(rows))
        after = state.following(
            kept, state.closed + closing, since=state.closed, factor=factor, heard=heard
        )
        return after, gain, before, rounds

    def filter_scored(self, state: DenseState, rows: Rows) -> tuple[DenseState, Scored]:
        """Fold rows in one by one, in order, at fixed hyperparameters.

        Returns:
            The state as after that many steps of one row each, but that earlier sites stay, and
            the scores of each row before it was learned.
        """
        model, factor = state.plain, state.factor
        blank, kept, found = Kept.none(model, rows.x.shape[1]), [], []
        for begin in range(0, rows.size, InOrder.block):
            own = rows.take(slice(begin, begin + InOrder.block))
            joint = state.meeting(model.batch(own), factor)
            fold = InOrder(joint, self.e_rounds, self.e_tolerance)
            fold.learn_all(joint.mean, joint.covariance)
            new = blank.like(own).with_sites(model, joint.batch, fold.sites)
            kept.append(new)
            found.append(scored(model, joint.batch, fold.before.marginals(joint)))
            factor = factor.appended(*joint.observed(fold.sites))
        heard = heard_with(state.heard, model.batch(rows))
        after = state.following(
            joined(kept), state.size + rows.size, since=state.size, factor=factor, heard=heard
        )
        return limited(after, self.limit(after)), joined_scores(found)

    def _learned(self, whole: Whole, rule: VEM | None) -> "_Found":
        """Hyperparameters from all rows, and their sites."""
        if whole.model.conjugate:
            count = 0
            if rule is not None:
                whole, count = self.m(whole, None, rule.evaluations)
            return _Found(whole, *whole.known(), (0, count))
        found, fit, rounds, count = self.alternated(self, whole, rule)
        return _Found(found, fit.rows, fit.bound, (rounds, count))

    def e(self, whole: Whole, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""
        return e_step(whole.joint, rows, rounds=self.e_rounds, tolerance=tolerance)

    def worth(self, whole: Whole, fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""
        return fit.bound + whole.beliefs().value(free_vector(whole.wrapped))

    def m(self, whole: Whole, fit: Fit | None, evaluations: int) -> tuple[Whole, int]:
        """Hyperparameters that a fit thinks better, and how many evaluations it took."""
        beliefs, held = whole.beliefs(), whole.kept.sites(whole.batch) if fit is None else fit.rows
        objective = Objective(whole.wrapped, whole.batch, held, beliefs)
        found = maximise(
            objective,
            free_vector(whole.wrapped),
            evaluations=evaluations,
            gain=_LITTLE / beliefs.size,
            inverse_hessian=whole.curvature,
        )
        if found.evaluations == 1:  # nothing was tried
            return whole, 1
        better = with_free(whole.wrapped, found.point)
        after = dataclasses.replace(whole, wrapped=better, curvature=found.inverse_hessian)
        return after, found.evaluations

    def told(self, state: DenseState, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""
        none = Rows(state.kept.x[:0], np.zeros((0, 1)), np.zeros(0, int))
        whole = Whole.of(state, none, state.model)
        held = whole.kept.sites(whole.batch)
        objective = Objective(state.model, whole.batch, held, whole.beliefs())
        return objective.bound(free_vector(model))


class _Found(NamedTuple):
    """The result of learning: hyperparameters, the sites of rows, the bound, and work."""

    whole: Whole
    rows: RowSites
    bound: float
    work: tuple[int, int]
