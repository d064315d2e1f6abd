"""The functional core: init, step, predict. Pure functions of a state.

state = learner.init(model, points)
state, info = learner.step(state, rows)
mean, covariance = learner.predict(state, x, channel)
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import block_diag

from streamgp.data.batch import Batch, Rows
from streamgp.inference import memory, past
from streamgp.inference.carry import carried
from streamgp.inference.cells import Cells
from streamgp.inference.components import Contributions, contributions, dense_parts
from streamgp.inference.e_step import first_sites
from streamgp.inference.joining import with_few_cells
from streamgp.inference.large_batch import LargeBatch, is_exact_in_parts
from streamgp.inference.likelihood_memory import expand_likelihoods, needs_memory
from streamgp.inference.past import Said
from streamgp.inference.posterior import Marginals, latent_means, marginals
from streamgp.inference.prior import Points
from streamgp.inference.refinement import refine_points
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.sequential import filter_rows
from streamgp.inference.state import Info, State
from streamgp.inference.vem import VEM, Episode, Options
from streamgp.inference.weight_uncertainty import spread_of_weights
from streamgp.model.composition import Composition
from streamgp.model.mixing import Mixed, open_covariance
from streamgp.model.mixing import Projection as MixedProjection
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import free_vector
from streamgp.registry import storable

_FEW_CHANNELS = 4  # the most channels of a model whose past rows are kept as cells
_CELLS_PER_POINT = 4  # the cells that each channel may have, for each inducing point


@storable
@dataclasses.dataclass(frozen=True)
class Learner:
    """How updates are made.

    Args:
        learning: How hyperparameters are learned; None leaves them alone.
        e_rounds: The largest number of rounds of an E step.
        e_tolerance: The gain of the bound, in nats, below which an E step ends.
        weight_uncertainty: Whether predictions include what data leave open about mixing weights.
    """

    learning: VEM | None = VEM()  # noqa: RUF009 (frozen)
    e_rounds: int = 100
    e_tolerance: float = 1e-4
    weight_uncertainty: bool = True

    @property
    def _options(self) -> Options:
        return Options(self.e_rounds, self.e_tolerance)

    def init(self, model: MultiTaskGP, points: Points) -> State:
        """The state before any data."""
        sizes = [len(z) for z in points]
        blank = past.empty(model.outputs, sizes, model.basis_size)
        cells = Cells.none(model, points[0].shape[1]) if self._keeps_cells(model) else None
        nothing = np.zeros(len(model.channels))
        return State(model, points, blank, memory.blank(model), nothing, cells=cells)

    def _keeps_cells(self, model: MultiTaskGP) -> bool:
        """Whether past rows are kept as cells, for kernels that are learned later.

        Every channel needs cells of its own, so that with many channels there would be too many.
        """
        if self.learning is None:
            return False
        return self.learning.cells > 0 and len(model.channels) <= _FEW_CHANNELS

    def _settled(self, state: State) -> State:
        """The state with no more cells than it may have.

        Channels whose cells were farther apart than the points would look noisier than they are.
        """
        if self.learning is None:
            return state
        resolved = _CELLS_PER_POINT * max(state.sizes) * len(state.model.channels)
        return with_few_cells(state, max(self.learning.cells, resolved))

    # Learning looks at the newest data and at sums, however much has been learned before.
    cost_grows: ClassVar[bool] = False
    parts_follow_time: ClassVar[bool] = False
    least_noise: ClassVar[float] = 0.0

    samples_together: ClassVar[int] = 1024

    def with_rule(self, rule: VEM | None) -> "Learner":
        """The same with another rule of learning."""
        return dataclasses.replace(self, learning=rule)

    def begin(self, model: MultiTaskGP, columns: int) -> State:
        """The state before any data, without points yet, for inputs of so many columns."""
        return self.init(model, tuple(np.zeros((0, columns)) for _ in range(sum(model.draws))))

    def move(self, state: State, points: Points) -> State:
        """The same knowledge at other inducing points.

        Cells are seen through them anew; without cells, what was said is projected.
        """
        return state.seen_again(points) if state.has_cells else carried(state, points)

    def refined(
        self,
        state: State,
        rows: Rows,
        free: Sequence[Bool[np.ndarray, " _"]],
        start: MultiTaskGP,
        *,
        evaluations: int,
    ) -> Points:
        """The state's points, those that are free where they serve the past and the rows best.

        Args:
            state: With the points.
            rows: The new observations.
            free: Which points of each latent function may move.
            start: The hyperparameters, while the state has no data.
            evaluations: How often the bound may be evaluated.
        """
        batch = state.model.batch(rows)
        return refine_points(state, batch, start, free, self._options, evaluations=evaluations)

    def tempered(self, state: State, part: float) -> State:
        """The state with that part of all it was told: the prior's part is untouched."""
        return state.replace(
            past=state.past.scaled(part),
            memory=state.memory.scaled(part),
            heard=part * state.heard,
            cells=None if state.cells is None else state.cells.scaled(part),
        )

    def trying(self, state: State, rows: Rows, start: MultiTaskGP) -> tuple[MultiTaskGP, float]:
        """The hyperparameters that a step learns from there, and its bound; nothing is kept."""
        after, info = self.step(state, rows, start, remember=False)
        return after.model, info.bound

    def step(
        self,
        state: State,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
        remember: bool | None = None,
    ) -> tuple[State, Info]:
        """Fold rows in; with `learn`, and a rule of learning, hyperparameters as well.

        Args:
            state: What is known before.
            rows: The new observations. If there are none, hyperparameters are learned from what
                is carried.
            start: The hyperparameters to begin from, if not the state's own.
            learn: Whether hyperparameters may be learned.
            remember: Whether to keep, for later learning, how the rows depend on the kernels. By
                default that is so if hyperparameters are learned.

        Returns:
            What is known after, and what happened.
        """
        learns = learn and self.learning is not None
        if learns and state.has_cells:  # in an M step, the past is what cells say
            state = state.seen_again()
        batch = state.model.batch(rows)
        episode = Episode(state, batch, self._options)
        here = episode.trial(state.model)
        before = scored(
            state.plain, batch, marginals(batch, state.posterior, here.setting.features)
        )
        begin = here if start is None or start is state.model else episode.trial(start)
        learned = episode.learn(begin, self.learning if learn else None)
        trial, fit, remembered = learned.trial, learned.fit, state.memory
        if self.learning is not None:
            kernels = learn if remember is None else remember
            remembered = episode.remembered(learned, kernels=kernels)
        sums, cells = episode.told(learned)
        after = state.replace(
            model=trial.wrapped,
            past=sums,
            memory=remembered,
            heard=episode.heard,
            cells=cells,
        )
        # What the step has computed on the way need not be computed again. The site and q(v) are
        # read from the past all the same: a state from a file then goes on with the same bits.
        vars(after).update(plain=trial.setting.model, prior=trial.prior, reading=trial.reading)
        bound = fit.bound - state.posterior.log_evidence
        if trial.reading is not state.reading or trial.past is not state.past:
            bound += trial.reading.beside(trial.past) - state.reading.beside(state.past)
        work = (learned.e_rounds, learned.m_evaluations)
        finite = after.is_finite(state)
        return self._settled(after) if finite else after, Info(bound, before, *work, finite)

    def revised(
        self, before: State, streamed: State, rows: Rows, parts: Iterable[Rows], *, remember: bool
    ) -> tuple[State, Info] | None:
        """As `revise`, or None where that would change nothing.

        Args:
            before: What is known before all parts, at the points of `streamed`.
            streamed: The state after the parts, folded in one after the other.
            rows: All rows.
            parts: The same in parts.
            remember: Whether to keep, for later learning, how the rows depend on the kernels.
        """
        if is_exact_in_parts(streamed.model, rows):
            return None
        return self.revise(before, streamed, parts, remember=remember)

    def revise(
        self, before: State, streamed: State, parts: Iterable[Rows], *, remember: bool
    ) -> tuple[State, Info]:
        """Learn parts of one batch together, at points and hyperparameters already learned.

        Only one part is in memory at a time; the posterior is that of a step with all of them.

        Args:
            before: What is known before all parts, at the points of `streamed`.
            streamed: The state after the parts, folded in one after the other. It has the
                hyperparameters, and a q(v) to begin with.
            parts: The parts. They are gone through several times.
            remember: Whether to keep, for later learning, how the rows depend on the kernels.

        Returns:
            What is known after, and what happened. No row is scored.
        """
        nothing = Rows(before.points[0][:0], np.zeros((0, 1)), np.zeros(0, int))
        ready, turned = self.step(before, nothing, streamed.model, learn=False)
        batch = LargeBatch(ready, parts, self._options)
        fit, rounds = batch.fitted(streamed.posterior)
        learns = self.learning is not None
        after = batch.added(fit, self._settled, remember=learns, kernels=remember)
        bound = turned.bound + fit.bound - ready.posterior.log_evidence
        finite = after.is_finite() and bool(np.isfinite(bound))
        return after, Info(bound, turned.scored, rounds, 0, finite)

    def filter(self, state: State, rows: Rows) -> tuple[State, Float[np.ndarray, " N"]]:
        """Fold rows in one by one, in order, at fixed hyperparameters.

        Returns:
            The state as after that many steps of one row each, and the log predictive density of
            each row before it was learned.
        """
        after, before = self.filter_scored(state, rows)
        return after, before.log_predictive

    def filter_scored(self, state: State, rows: Rows) -> tuple[State, Scored]:
        """As `filter`, with all scores of each row before it was learned."""
        done = filter_rows(state, rows, rounds=self.e_rounds, tolerance=self.e_tolerance)
        batch, remembered, known = done.setting.batch, state.memory, state.past.copy()
        if self.learning is not None and needs_memory(state.model):
            of_likelihoods = expand_likelihoods(state.model, done.setting, done.after)
            remembered += memory.joined(memory.blank(state.model.kernels), of_likelihoods)
        basis = state.plain.basis(batch)
        said = Said(done.setting, done.rows, done.projection, basis)
        past.add(known, said)
        heard, cells = Episode(state, batch, self._options).heard, state.cells
        cells = cells and cells.with_rows(said)
        after = state.replace(past=known, memory=remembered, heard=heard, cells=cells)
        vars(after).update(plain=state.plain, prior=state.prior, reading=state.reading)
        return self._settled(after), scored(state.plain, batch, done.before)

    def predict(
        self, state: State, x: Float[np.ndarray, "N P"], channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters f of a channel at each input."""
        latents = state.plain.channels[channel].likelihood.latents
        if not len(x):
            return np.zeros((0, latents)), np.zeros((0, latents, latents))
        batch, projection = unobserved(state.plain, x, channel), state.prior.project(x)
        mixed = Mixed.of(state.plain, batch)
        at_rows = marginals(batch, state.posterior, mixed.features(projection))
        mean, covariance = at_rows.mean.reshape(len(x), latents), at_rows.covariance[0]
        if self.weight_uncertainty:
            known = latent_means(state.posterior, projection)
            own = state.open_weights[channel]
            covariance = covariance + np.einsum("nq,jqkr,nr->njk", known, own, known)
        return mean, covariance

    def outlook(
        self, state: State, channel: int, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """As `predict`, without what data leave open about mixing weights, as rows are scored."""
        return dataclasses.replace(self, weight_uncertainty=False).predict(state, x, channel)

    def predict_joint(
        self, state: State, x: Float[np.ndarray, "N P"], channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """q(f) of several channels at all inputs together.

        Returns:
            Mean and covariance of R numbers: channel after channel, input after input, latent
            parameter after latent parameter.
        """
        prior, posterior, model = state.prior, state.posterior, state.plain
        projection = prior.project(x)
        means, halves = [], []
        for channel in channels:
            batch = unobserved(model, x, channel)
            features = Mixed.of(model, batch).features(projection)
            halves.append(solve_lower(posterior.chol, features.design.T))
            means.append(features.offset + features.design @ posterior.mean)
        half = np.concatenate(halves, axis=1)
        left = prior.open_covariance(x, projection)
        covariance = half.T @ half + open_covariance(model, channels, left)
        if self.weight_uncertainty:
            covariance += self._open_weights(state, projection, channels)
        return np.concatenate(means), covariance

    def components(
        self, state: State, x: Float[np.ndarray, "N P"], composition: Composition
    ) -> Contributions:
        """Mean and covariance of the components of a channel at each input."""
        open_weights = state.open_weights[composition.channel] if self.weight_uncertainty else None
        parts = dense_parts(state.prior, state.posterior, x, composition)
        return contributions(state.plain, composition, x, parts, open_weights)

    def _open_weights(
        self, state: State, projection: MixedProjection, channels: Sequence[int]
    ) -> Float[np.ndarray, "R R"]:
        """What is open about the weights, between all inputs of each channel."""
        latents = latent_means(state.posterior, projection)
        open_weights = [state.open_weights[channel] for channel in channels]
        return block_diag(*(spread_of_weights(latents, own) for own in open_weights))

    def latent_means(self, state: State, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""
        return latent_means(state.posterior, state.prior.project(x))

    def told(self, state: State, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""
        nothing = Rows(state.points[0][:0], np.zeros((0, 1)), np.zeros(0, int))
        episode = Episode(state, state.model.batch(nothing), self._options)
        trial = episode.trial(model)
        value, gradient = episode.bound(trial, first_sites(trial.setting))
        step = free_vector(model) - free_vector(state.model)
        return value + state.memory.value(step), gradient + state.memory.slope(step)

    def log_predictive(self, state: State, rows: Rows) -> Float[np.ndarray, " N"]:
        """log p(y) of each row, nothing learned."""
        return self.scored(state, rows).log_predictive

    def scored(self, state: State, rows: Rows) -> Scored:
        """All scores of each row, nothing learned."""
        batch = state.model.batch(rows)
        return scored(state.plain, batch, self._marginals(state, batch))

    def _marginals(self, state: State, batch: Batch) -> Marginals:
        features = Mixed.of(state.plain, batch).features(state.prior.project(batch.x))
        return marginals(batch, state.posterior, features)


def unobserved(model: MultiTaskGP, x: Float[np.ndarray, "N P"], channel: int) -> Batch:
    """Inputs of a channel without observations, as a batch."""
    width = model.channels[channel].likelihood.observation_dim
    where: Int[np.ndarray, " N"] = np.full(len(x), channel)
    return model.batch(Rows(x, np.full((len(x), width), np.nan), where))
