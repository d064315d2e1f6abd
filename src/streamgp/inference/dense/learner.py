"""The functional core on rows over any inputs: begin, step, filter, predict. No inducing points."""

import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch, Rows
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bounds import at_top
from streamgp.inference.dense.design import Design, covariance
from streamgp.inference.dense.factor import Factor
from streamgp.inference.dense.joining import limited
from streamgp.inference.dense.objective import Objective
from streamgp.inference.dense.setting import Joint, limits_of, observed
from streamgp.inference.dense.state import DenseState
from streamgp.inference.e_step import (
    Fit,
    e_step,
    exact_sites,
    exact_sites_at,
    first_sites,
    fit_rows,
    per_row,
)
from streamgp.inference.in_order import InOrder
from streamgp.inference.kept import Kept, joined
from streamgp.inference.m_step import maximise
from streamgp.inference.on_rows import LearnerOnRows, faded
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.scoring import joined as joined_scores
from streamgp.inference.sites import RowSites, times
from streamgp.inference.vem import VEM, Info, heard_with
from streamgp.model.mixing import offsets
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, unwrap, with_free

_EACH, _FEWEST, _MOST = 256, 512, 1024  # rows that are kept: per input and channel, and in all
_OPEN = 20  # rows that are not conjugate whose sites change as others come, the latest that came
_ROUGH = 0.1  # nats: the gain below which E steps end where hyperparameters are only tried
_LITTLE = 0.1  # nats: an M step ends where it gains no more
_LEARNED_BY_HEART = 64  # hyperparameters: of more, the next M step learns anew how they bend


@dataclasses.dataclass(frozen=True)
class DenseLearner(LearnerOnRows):
    """How updates are made on rows over any inputs. See `LearnerOnRows`."""

    parts_follow_time: ClassVar[bool] = False
    rows_together: ClassVar[int] = 512
    rows_to_race: ClassVar[int] = 320
    evaluations_to_compare: ClassVar[int] = 1
    brief: ClassVar[int] = 20
    growth: ClassVar[float] = 1.25
    samples_together: ClassVar[int] = 1024

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
            begun = _Whole.of(state, rows, start or state.model)
            found = self._learned(begun, rule)
            after, work = found.whole.state(found.rows), found.work
            bound = found.bound - _Whole.of(state, rows.take(slice(0)), state.model).known()[1]
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
        found = rough._learned(_Whole.of(state, rows, start), self.learning)
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

    def _learned(self, whole: "_Whole", rule: VEM | None) -> "_Found":
        """Hyperparameters from all rows, and their sites."""
        if whole.model.conjugate:
            count = 0
            if rule is not None:
                whole, count = self.m(whole, None, rule.evaluations)
            return _Found(whole, *whole.known(), (0, count))
        found, fit, rounds, count = self.alternated(self, whole, rule)
        return _Found(found, fit.rows, fit.bound, (rounds, count))

    def e(self, whole: "_Whole", rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""
        return e_step(whole.joint, rows, rounds=self.e_rounds, tolerance=tolerance)

    def worth(self, whole: "_Whole", fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""
        return fit.bound + whole.beliefs().value(free_vector(whole.wrapped))

    def m(self, whole: "_Whole", fit: Fit | None, evaluations: int) -> tuple["_Whole", int]:
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
        whole = _Whole.of(state, none, state.model)
        held = whole.kept.sites(whole.batch)
        objective = Objective(state.model, whole.batch, held, whole.beliefs())
        return objective.bound(free_vector(model))


class _Found(NamedTuple):
    """The result of learning: hyperparameters, the sites of rows, the bound, and work."""

    whole: "_Whole"
    rows: RowSites
    bound: float
    work: tuple[int, int]


@dataclasses.dataclass(frozen=True, eq=False)
class _Whole:
    """All rows, new ones among them, under some hyperparameters.

    Attributes:
        before: The state before the new rows.
        wrapped: The hyperparameters.
        kept: All rows, the new ones last.
        new: How many are new.
        heard: The observations of each channel.
        curvature: What M steps have learned of the objective, as an inverse Hessian; None if these
            hyperparameters do not go on from those of the state.
    """

    before: DenseState
    wrapped: MultiTaskGP
    kept: Kept
    new: int
    heard: Float[np.ndarray, " D"]
    curvature: Float[np.ndarray, "T T"] | None

    @classmethod
    def of(cls, state: DenseState, rows: Rows, wrapped: MultiTaskGP) -> "_Whole":
        new = Kept.none(state.plain, state.kept.x.shape[1]).like(rows)
        more = np.bincount(new.channel, minlength=len(state.heard))
        curvature = state.curvature if wrapped is state.model else None
        kept = joined([state.kept, new])
        return cls(state, wrapped, kept, rows.size, state.heard + more, curvature)

    @functools.cached_property
    def model(self) -> MultiTaskGP:
        """The hyperparameters, plain."""
        return unwrap(self.wrapped)

    @functools.cached_property
    def batch(self) -> Batch:
        """All rows, sorted for the algebra."""
        return self.kept.batch(self.model)

    @functools.cached_property
    def joint(self) -> Joint:
        """All rows before any of them is learned."""
        design = Design.of(self.model, self.batch)
        own = covariance(self.model.latent_kernels, design, design)
        return Joint(self.model, self.batch, np.zeros(len(own)), own)

    @functools.cached_property
    def factor(self) -> Factor:
        """All rows as scalar observations, where all are conjugate."""
        offset = offsets(self.model, self.batch)
        sites = exact_sites_at(self.model, self.batch, offset, self.kept.sites(self.batch))
        design, limits = Design.of(self.model, self.batch), limits_of(self.model, self.batch)
        return Factor.of(self.model.latent_kernels, *observed(self.batch, design, sites, limits))

    def beliefs(self) -> Beliefs:
        """What is believed of hyperparameters beside what rows say."""
        return Beliefs.of(self.wrapped, self.heard)

    def first_sites(self) -> RowSites:
        """The sites that rows begin with."""
        return first_of(self.joint, self.kept, self.kept.size - self.new)

    def known(self) -> tuple[RowSites, float]:
        """The sites that all rows have, and the bound."""
        sites = self.kept.sites(self.batch)
        if not self.model.conjugate:
            fit = fit_rows(self.joint, exact_sites(self.joint, sites))
            return fit.rows, fit.bound
        offset = offsets(self.model, self.batch)
        exact = exact_sites_at(self.model, self.batch, offset, sites)
        return exact, self.factor.evidence + at_top(self.model, self.batch, exact, offset)

    def state(self, rows: RowSites) -> DenseState:
        """The state with these rows under these hyperparameters, with sites as given."""
        before = self.before
        changes: dict[str, Any] = {"heard": self.heard, "model": self.wrapped}
        if self.curvature is None or len(self.curvature) <= _LEARNED_BY_HEART:
            changes["curvature"] = self.curvature
        if self.model.conjugate:
            since = before.size
            new = self.kept.take(slice(since, None))
            after = before.following(
                new, self.kept.size, since=since, factor=self.factor, **changes
            )
        else:
            kept = self.kept.with_sites(self.model, self.batch, rows)
            after = before.following(kept, kept.size - left_open(self.model, kept), **changes)
        vars(after).update(plain=self.model)
        return after


def first_of(joint: Joint, kept: Kept, known: int) -> RowSites:
    """The sites that rows begin with: of the first, those that they have; by them, of the others.

    Args:
        joint: The rows.
        kept: The same, in the order in which they came.
        known: How many have sites.
    """
    if not known:
        return first_sites(joint)
    batch = joint.batch
    held = exact_sites(joint, kept.sites(batch))
    if known == kept.size or joint.model.conjugate:
        return held
    _, before = joint.conditioned(held)
    pull, precision = per_row(
        lambda c, *row: c.first_site(*row), joint.model, batch, before.mean, before.covariance
    )
    linear = pull + times(batch, precision, before.centred)
    has_site = batch.order < known
    for group in batch.groups:
        stays = has_site[group.rows]
        if joint.model.channels[group.channel].likelihood.conjugate or not group.is_observed:
            stays = np.ones(len(stays), bool)
        own = precision[group.run][group.within]
        own[stays] = held.precision[group.run][group.within][stays]
        flat = np.repeat(stays, group.latents)
        linear[group.flat][flat] = held.linear[group.flat][flat]
    return RowSites(linear, precision)


def left_open(model: MultiTaskGP, rows: Kept) -> int:
    """How many of the last rows stay open: from the first of the latest that are not conjugate."""
    may = ~np.array([channel.likelihood.conjugate for channel in model.channels])
    candidates = np.flatnonzero(may[rows.channel] & ~np.isnan(rows.y[:, 0]))
    return rows.size - int(candidates[-_OPEN:][0]) if len(candidates) else 0
