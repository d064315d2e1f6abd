"""The functional core of chains: init, step, filter, predict. Pure functions of a state."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference import memory
from streamgp.inference.asking import Asking, answered
from streamgp.inference.chain.ahead import ahead
from streamgp.inference.chain.components import chain_parts
from streamgp.inference.chain.episode import Episode, Learned, exact
from streamgp.inference.chain.few_rows import FewRows
from streamgp.inference.chain.folded import exactly_folded, parted
from streamgp.inference.chain.grid import wanted, with_times
from streamgp.inference.chain.in_time import are_in_time, before_each
from streamgp.inference.chain.last_interval import meeting
from streamgp.inference.chain.nodes import explained
from streamgp.inference.chain.objective import ChainObjective
from streamgp.inference.chain.open_rows import followed
from streamgp.inference.chain.places import places_of
from streamgp.inference.chain.reader import Reader
from streamgp.inference.chain.setting import ChainSetting
from streamgp.inference.chain.state import ChainState, Totals, following, with_sums
from streamgp.inference.chain.windowed import Window, Windowed
from streamgp.inference.components import Contributions, contributions
from streamgp.inference.likelihood_memory import expand_likelihoods, needs_memory
from streamgp.inference.memory import Memory
from streamgp.inference.posterior import Marginals
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.scoring import joined as joined_scores
from streamgp.inference.sequential import Block, InOrder
from streamgp.inference.state import Info
from streamgp.inference.trust import trusted
from streamgp.inference.vem import VEM, Options, heard_with
from streamgp.model.composition import Composition
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector

_BLOCK = 64  # samples that are taken together
_ROUGH = 0.1  # nats: the gain below which E steps end where hyperparameters are only tried


@dataclasses.dataclass(frozen=True)
class ChainLearner:
    """How updates are made on a chain. See `Learner` for the settings.

    Args:
        learning: How hyperparameters are learned; None leaves them alone.
        e_rounds: The largest number of rounds of an E step.
        e_tolerance: The gain of the bound, in nats, below which an E step ends.
        weight_uncertainty: Whether predictions include what data leave open about mixing weights.
        open_rows: How many rows of channels that are not conjugate have sites that may still
            change, the latest in time.
    """

    learning: VEM | None
    e_rounds: int
    e_tolerance: float
    weight_uncertainty: bool
    open_rows: int = 0

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
        """The state with that part of all it was told: the prior's part is untouched.

        No row stays open: its site would count in full.
        """
        state = state.closed
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
        return answered(self.stepping(state, rows, start, learn=learn, remember=remember))

    def stepping(
        self,
        state: ChainState,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
        remember: bool | None = None,
    ) -> Asking[tuple[ChainState, Info]]:
        """`step` as work that asks for each evaluation of its objective (`inference/asking.py`)."""
        episode = Episode(state, followed(state.open, rows), self._options)
        here = episode.trial(state.model)
        before, known = Scored.none(), state.known.weights.log_evidence
        if here.setting is not None:
            at_rows, known = episode.before(here.setting)
            before = scored(state.plain, episode.new, at_rows)
        begin = here if start is None or start is state.model else episode.trial(start)
        learned = yield from episode.learn(begin, self.learning if learn else None)
        trial = learned.trial
        after, bound = self._folded(episode, learned)
        bound -= known
        if trial.state.model is not state.model:
            now, then = trial.state.mixing.reading, state.mixing.reading
            bound += now.beside(state.totals) - then.beside(state.totals)
        work = (learned.e_rounds, learned.m_evaluations)
        finite = after.is_finite(state) and bool(np.isfinite(bound))
        return after, Info(bound, before, *work, finite)

    def trying(
        self, state: ChainState, rows: Rows, start: MultiTaskGP
    ) -> Asking[tuple[MultiTaskGP, float]]:
        """The hyperparameters that a step learns from there, and its bound, up to a constant.

        Nothing is kept: rows are not scored, and where a fit has the bound they join no sums. E
        steps end early, as it is whole nats that tell good starts from poor ones.
        """
        options = self._options._replace(e_tolerance=max(self.e_tolerance, _ROUGH))
        episode = Episode(state, followed(state.open, rows), options)
        learned = yield from episode.learn(episode.trial(start), self.learning)
        if learned.fit is None:
            return learned.trial.state.model, self._folded(episode, learned)[1]
        return learned.trial.state.model, learned.fit.bound

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
            elif self.open_rows and not state.plain.conjugate:
                state, own = self._in_window(state, rest.take(slice(_BLOCK)))
            else:
                state, own = self._filtered(state, rest.take(slice(_BLOCK)))
            found.append(own)
            done += len(own.table)
        return state, joined_scores(found)

    def _in_window(self, state: ChainState, rows: Rows) -> tuple[ChainState, Scored]:
        """The first of these rows, while the latest ones are open."""
        every = followed(state.open, rows)
        met = meeting(state.known, state.plain, state.model.batch(every))
        if not FewRows.suits(met.batch, met.place):
            if rows.size > 1:
                return self._in_window(state, rows.take(slice(rows.size // 2)))
            after, info = self.step(state, rows, learn=False)
            return after, info.scored
        how = Window(self.open_rows, self.e_rounds, self.e_tolerance)
        window, batch = Windowed(state, every, met, how), state.model.batch(rows)
        own = scored(state.plain, batch, window.learn())
        heard = heard_with(state.heard, batch)
        after = following(state, state.known, open=window.open, heard=heard)
        left = window.left
        if left is not None:
            setting, sites, at_rows = left
            remembered = self._remembering(state.model, state.memory, setting, at_rows)
            after = with_sums(after, setting, sites, memory=remembered)
        return after, own

    def _filtered(self, state: ChainState, rows: Rows) -> tuple[ChainState, Scored]:
        """One block of rows."""
        batch = state.model.batch(rows)
        setting = meeting(state.known, state.plain, batch)
        fold = InOrder(state.model, setting, self.e_rounds, self.e_tolerance)
        found = places_of(state.known, setting.window, setting.place, setting.seen.between)
        mean, covariance = explained(state.known, setting.seen, found)
        block = Block.of(batch, np.argsort(batch.order))
        own = block.order
        fold.learn(block, mean[own], covariance[np.ix_(own, own)])
        after = fold.after.marginals(setting)
        remembered = self._remembering(state.model, state.memory, setting, after)
        heard = heard_with(state.heard, batch)
        before = fold.before.marginals(setting)
        state = with_sums(state, setting, fold.sites, heard=heard, memory=remembered)
        return state, scored(state.plain, batch, before)

    def _folded(self, episode: Episode, learned: Learned) -> tuple[ChainState, float]:
        """The state with what rows said, and the bound less what the past says beside its site."""
        (state, setting), fit = learned.trial, learned.fit
        past = state.memory
        if self.learning is not None:
            past = past.recentred(state.model, episode.state.model)
        changes: dict[str, Any] = {"heard": episode.heard, "memory": past}
        if setting is None:
            return following(state, state.known, **changes), state.known.weights.log_evidence
        if fit is None:
            return exactly_folded(state, setting, **changes)
        still_open, left = parted(episode, learned, fit, self.open_rows)
        changes["open"] = still_open
        if left is None:
            after = following(state, state.known, **changes)
        else:
            changes["memory"] = self._remembering(state.model, past, left.setting, left.at_rows)
            kept = trusted(state.model, *left)
            whole = fit if kept is fit.rows else None
            after = with_sums(state, left.setting, kept, whole, **changes)
        if still_open is not None:  # it is asked for by every report
            between = setting.seen.between
            every = state.totals.with_rows(setting.model, episode.batch, fit.rows, between)
            vars(after).update(every_total=every)
        return after, fit.bound

    def _remembering(
        self, model: MultiTaskGP, past: Memory, setting: ChainSetting, at_rows: Marginals
    ) -> Memory:
        """A memory with how the density of rows depends on likelihoods."""
        if self.learning is None or not needs_memory(model):
            return past
        said = expand_likelihoods(model, setting, at_rows)
        return past + memory.joined(memory.blank(model.kernels), said)

    # -- reading -------------------------------------------------------------------------------

    def predict(
        self, state: ChainState, x: Float[np.ndarray, "N P"], channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters f of a channel at each input."""
        return Reader(state, self.weight_uncertainty).channel(x, channel)

    def outlook(
        self, state: ChainState, channel: int, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """As `predict`, without what data leave open about mixing weights, as rows are scored."""
        if x[:, 0].min() > state.known.links[-1].segment.times[-1]:
            return ahead(state, x, channel)
        return Reader(state, False).channel(x, channel)

    def predict_joint(
        self, state: ChainState, x: Float[np.ndarray, "N P"], channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """q(f) of several channels at all inputs together.

        Returns:
            Mean and covariance of R numbers: channel after channel, input after input, latent
            parameter after latent parameter.
        """
        return Reader(state, self.weight_uncertainty).joint(x, channels)

    def components(
        self, state: ChainState, x: Float[np.ndarray, "N P"], composition: Composition
    ) -> Contributions:
        """Mean and covariance of the components of a channel at each input."""
        open_weights = state.open_weights[composition.channel] if self.weight_uncertainty else None
        parts = chain_parts(state.whole.known, x, composition)
        return contributions(state.plain, composition, x, parts, open_weights)

    def latent_means(
        self, state: ChainState, x: Float[np.ndarray, "N P"]
    ) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""
        return Reader(state, False).latent_means(x)

    def told(self, state: ChainState, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""
        return ChainObjective.of_data(state)(free_vector(model))

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
