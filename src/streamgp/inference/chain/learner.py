"""The functional core of chains: init, step, filter, predict. Pure functions of a state."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference import memory
from streamgp.inference.chain.episode import Episode, Learned, Trial, exact
from streamgp.inference.chain.evidence import Past, evidence
from streamgp.inference.chain.grid import following, wanted, with_times
from streamgp.inference.chain.in_time import are_in_time, before_each
from streamgp.inference.chain.joint import explained
from streamgp.inference.chain.last_interval import meeting
from streamgp.inference.chain.places import places
from streamgp.inference.chain.reader import Reader
from streamgp.inference.chain.segments import joined
from streamgp.inference.chain.setting import ChainSetting
from streamgp.inference.chain.state import ChainState, Totals
from streamgp.inference.e_step import Fit
from streamgp.inference.likelihood_memory import expand_likelihoods, needs_memory
from streamgp.inference.memory import Memory
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.scoring import joined as joined_scores
from streamgp.inference.sequential import Block, InOrder
from streamgp.inference.sites import RowSites
from streamgp.inference.state import Info
from streamgp.inference.trust import trusted
from streamgp.inference.vem import VEM, Options, heard_with
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.parameters import free_vector

_BLOCK = 64  # samples that are taken together


@dataclasses.dataclass(frozen=True)
class ChainLearner:
    """How updates are made on a chain. See `Learner` for the settings.

    Args:
        learning: How hyperparameters are learned; None leaves them alone.
        e_rounds: The largest number of rounds of an E step.
        e_tolerance: The gain of the bound, in nats, below which an E step ends.
        weight_uncertainty: Whether predictions include what data leave open about mixing weights.
    """

    learning: VEM | None
    e_rounds: int
    e_tolerance: float
    weight_uncertainty: bool

    @property
    def _options(self) -> Options:
        return Options(False, self.e_rounds, self.e_tolerance)

    # Hyperparameters are learned by passes over the whole chain.
    cost_grows: ClassVar[bool] = True
    parts_follow_time: ClassVar[bool] = True
    can_filter: ClassVar[bool] = True
    samples_together: ClassVar[int] = 4096
    # Where noise is less than that part of the data's spread, rounding would take over.
    least_noise: ClassVar[float] = 1e-4

    def with_rule(self, rule: VEM | None) -> "ChainLearner":
        """The same with another rule of learning."""
        return dataclasses.replace(self, learning=rule)

    def begin(self, model: MultiTaskGP, columns: int) -> ChainState:
        """The state before any data."""
        heard = np.zeros(len(model.channels))
        return ChainState(model, (), Totals.blank(model), memory.blank(model), heard)

    def tempered(self, state: ChainState, part: float) -> ChainState:
        """The state with that part of all it was told: the prior's part is untouched."""
        return state.replace(
            segments=tuple(segment.scaled(part) for segment in state.segments),
            totals=state.totals.scaled(part),
            memory=state.memory.scaled(part),
            heard=part * state.heard,
        )

    def step(
        self,
        state: ChainState,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
        remember: bool | None = None,
    ) -> tuple[ChainState, Info]:
        """Fold rows in; with `learn`, and a rule of learning, hyperparameters as well.

        Args:
            state: What is known before. Its times hold the rows.
            rows: The new observations. If there are none, hyperparameters are learned from what
                is carried.
            start: The hyperparameters to begin from, if not the state's own.
            learn: Whether hyperparameters may be learned.
            remember: Not needed: sums tell how past data depend on the kernels.

        Returns:
            What is known after, and what happened.
        """
        batch = state.model.batch(rows)
        episode = Episode(state, batch, self._options)
        here = episode.trial(state.model)
        before = Scored.none()
        if here.setting is not None:
            before = scored(state.plain, batch, here.setting.before[1])
        begin = here if start is None or start is state.model else episode.trial(start)
        learned = episode.learn(begin, self.learning if learn else None)
        trial = learned.trial
        beside = {"heard": episode.heard, "memory": self._remembered(state, learned)}
        after, bound = _folded(trial, learned.fit, beside)
        bound -= state.known.weights.log_evidence
        if trial.state.model is not state.model:
            now, then = trial.state.mixing.reading, state.mixing.reading
            bound += now.beside(state.totals) - then.beside(state.totals)
        work = (learned.e_rounds, learned.m_evaluations)
        finite = after.is_finite(state) and bool(np.isfinite(bound))
        return after, Info(bound, before, *work, finite)

    def revised(
        self,
        before: ChainState,
        streamed: ChainState,
        rows: Rows,
        parts: Iterable[Rows],
        *,
        remember: bool,
    ) -> None:
        """Nothing: parts follow one another in time, so that each sees all that came before it."""

    def filter_scored(self, state: ChainState, rows: Rows) -> tuple[ChainState, Scored]:
        """Fold rows in one by one, in order, at fixed hyperparameters.

        Returns:
            The state as after that many steps of one row each, and the scores of each row before
            it was learned.
        """
        found, done = [], 0
        is_exact = state.plain.conjugate and not needs_memory(state.model)
        while done < rows.size:
            rest = rows.take(slice(done, None))
            if is_exact and are_in_time(state, rest):
                ready = np.searchsorted(rest.x[:, 0], state.known.quiet_from, side="left")
                if ready == 0:
                    state, own = _in_time(state, rest)
                else:  # samples among data go first
                    state, own = self._filtered(state, rest.take(slice(min(ready, _BLOCK))))
            else:
                state, own = self._filtered(state, rest.take(slice(_BLOCK)))
            found.append(own)
            done += len(own.table)
        return state, joined_scores(found)

    def _filtered(self, state: ChainState, rows: Rows) -> tuple[ChainState, Scored]:
        """One block of rows."""
        batch = state.model.batch(rows)
        setting = meeting(state.known, state.plain, batch)
        fold = InOrder(state.model.channels, setting, self.e_rounds, self.e_tolerance)
        mean, covariance = explained(state.known, setting.seen, places(state.known, batch.x[:, 0]))
        block = Block.of(batch, np.argsort(batch.order))
        own = block.order
        fold.learn(block, mean[own], covariance[np.ix_(own, own)])
        after, remembered = fold.after.marginals(setting), state.memory
        if self.learning is not None and needs_memory(state.model):
            said = expand_likelihoods(state.model, setting, after)
            remembered = remembered + memory.joined(memory.blank(state.model.kernels), said)
        heard = heard_with(state.heard, batch)
        before = fold.before.marginals(setting)
        state = with_sums(state, setting, fold.sites, heard=heard, memory=remembered)
        return state, scored(state.plain, batch, before)

    def _remembered(self, state: ChainState, learned: Learned) -> Memory:
        """The state's memory with the batch's: how its density depends on likelihoods."""
        model, fit, setting = learned.trial.state.model, learned.fit, learned.trial.setting
        if self.learning is None:
            return state.memory
        past = state.memory.recentred(model, state.model)
        if fit is None or setting is None or not needs_memory(model):
            return past
        said = expand_likelihoods(model, setting, fit.marginals)
        return past + memory.joined(memory.blank(model.kernels), said)

    # -- reading -------------------------------------------------------------------------------

    def predict(
        self, state: ChainState, x: Float[np.ndarray, "N P"], channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters f of a channel at each input."""
        return Reader(state, self.weight_uncertainty).channel(x, channel)

    def predict_joint(
        self, state: ChainState, x: Float[np.ndarray, "N P"], channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """q(f) of several channels at all inputs together.

        Returns:
            Mean and covariance of R numbers: channel after channel, input after input, latent
            parameter after latent parameter.
        """
        return Reader(state, self.weight_uncertainty).joint(x, channels)

    def latent_means(
        self, state: ChainState, x: Float[np.ndarray, "N P"]
    ) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""
        return Reader(state, False).latent_means(x)

    def told(self, state: ChainState, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""
        value, gradient = evidence(Past(joined(state.segments), state.totals), model)
        step = free_vector(model) - free_vector(state.model)
        return value + state.memory.value(step), gradient + state.memory.slope(step)

    def scored(self, state: ChainState, rows: Rows) -> Scored:
        """The scores of each row, nothing learned."""
        batch = state.model.batch(rows)
        if not state.segments:  # the prior's, at times of their own
            state = with_times(state, wanted(state, state.mixing, rows.x[:, 0]))
        at_rows = Reader(state, False).marginals(batch)
        return scored(state.plain, batch, at_rows)


def _in_time(state: ChainState, rows: Rows) -> tuple[ChainState, Scored]:
    """Conjugate samples in the order of time, with no data among or after them."""
    batch = state.model.batch(rows)
    setting = meeting(state.known, state.plain, batch)
    sites = exact(setting)
    after = with_sums(state, setting, sites, heard=heard_with(state.heard, batch))
    forward = after.known.since(setting.window)
    before = before_each(setting, sites, forward, np.argsort(batch.order))
    return after, scored(state.plain, batch, before)


def _folded(trial: Trial, fit: Fit | None, beside: Mapping[str, Any]) -> tuple[ChainState, float]:
    """The state with what rows said and with other fields, and its bound.

    What the past says beside its site is left out of the bound.
    """
    state, setting = trial
    if setting is None:
        return following(state, state.known, **beside), state.known.weights.log_evidence
    if fit is not None:
        rows = trusted(state.model, setting, fit.rows, fit.marginals)
        own = fit if rows is fit.rows else None
        return with_sums(state, setting, rows, own, **beside), fit.bound
    after = with_sums(state, setting, exact(setting), **beside)
    left = state.mixing.reading.slack_weights * (after.totals.slack - state.totals.slack)
    return after, after.known.weights.log_evidence + _at_offsets(setting) - 0.5 * float(left.sum())


def _at_offsets(setting: ChainSetting) -> float:
    """The log densities of rows at their offsets: what conjugate rows say beside their sites."""
    none = tuple(np.zeros(own.shape) for own in setting.features.slack)
    groups = of_groups(setting.model, setting.batch, setting.features.offset, none)
    return sum(
        float(likelihood.expected(group.y, offset, zero).value.sum())
        for group, likelihood, offset, zero in groups
    )


def with_sums(
    state: ChainState,
    setting: ChainSetting,
    rows: RowSites,
    fit: Fit | None = None,
    **changes: Any,
) -> ChainState:
    """The state with what rows said.

    Args:
        state: Whose times hold the rows.
        setting: The rows that meet it.
        rows: Their sites.
        fit: The fit that they come from, if these are its sites as they are.
        changes: Other fields of the state, by name.
    """
    window = setting.window
    segment = window.segment.with_rows(setting.said(rows))
    known = setting.known.replaced(window, segment, *setting.absorbed(rows, segment, fit))
    totals = state.totals.with_rows(setting.model, setting.batch, rows, setting.seen.between)
    return following(state, known, totals=totals, **changes)
