"""The functional core at inducing points: init, step, predict. Pure functions of a state.

state = learner.init(model, points)
state, info = learner.step(state, rows)
mean, covariance = learner.predict(state, x, channel)
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import block_diag

from streamgp.data.batch import Batch, Rows
from streamgp.inference.components import Contributions, contributions, dense_parts
from streamgp.inference.e_step import first_sites
from streamgp.inference.pace import Pace
from streamgp.inference.posterior import Marginals, latent_means, marginals
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.sparse.absorbed import Absorbed, absorbed
from streamgp.inference.sparse.carry import carried
from streamgp.inference.sparse.episode import Episode, Options
from streamgp.inference.sparse.filtering import filter_rows
from streamgp.inference.sparse.prior import Points
from streamgp.inference.sparse.refinement import refine_points
from streamgp.inference.sparse.state import State
from streamgp.inference.unobserved import unobserved
from streamgp.inference.vem import VEM, Info
from streamgp.inference.weight_uncertainty import spread_of_weights
from streamgp.model.composition import Composition
from streamgp.model.mixing import Mixed, open_covariance
from streamgp.model.mixing import Projection as MixedProjection
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import unwrap
from streamgp.registry import storable


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
        blank = Absorbed.none(unwrap(model), [len(z) for z in points])
        return State(model, points, blank, np.zeros(len(model.channels)))

    on_rows: ClassVar[bool] = False
    least_noise: ClassVar[float] = 0.0
    pace: ClassVar[Pace] = Pace(
        rows=8192,  # whose features at some hundred points take some ten megabytes
        samples=1024,  # as many as points are placed for now and then
        racing=1024,  # a first batch of more rows is judged by some of them
        comparing=6,
        brief=40,  # every M step takes its time: what it leaves out is lost for the next one
    )

    def with_rule(self, rule: VEM | None) -> "Learner":
        """The same with another rule of learning."""
        return dataclasses.replace(self, learning=rule)

    def begin(self, model: MultiTaskGP, columns: int) -> State:
        """The state before any data, without points yet, for inputs of so many columns."""
        return self.init(model, tuple(np.zeros((0, columns)) for _ in range(sum(model.draws))))

    def move(self, state: State, points: Points) -> State:
        """The same knowledge at other inducing points: what was said is projected."""
        return carried(state, points)

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
        absorbed = state.absorbed.each(lambda array: part * array)
        return state.replace(absorbed=absorbed, heard=part * state.heard)

    def trying(self, state: State, rows: Rows, start: MultiTaskGP) -> tuple[MultiTaskGP, float]:
        """The hyperparameters that a step learns from there, and its bound; nothing is kept."""
        after, info = self.step(state, rows, start)
        return after.model, info.bound

    def step(
        self,
        state: State,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
    ) -> tuple[State, Info]:
        """Fold rows in; with `learn`, and a rule of learning, hyperparameters as well.

        Args:
            state: What is known before.
            rows: The new observations. If there are none, hyperparameters are learned from what
                is known.
            start: The hyperparameters to begin from, if not the state's own.
            learn: Whether hyperparameters may be learned.

        Returns:
            What is known after, and what happened.
        """
        batch = state.model.batch(rows)
        episode = Episode(state, batch, self._options)
        here = episode.trial(state.model)
        at_rows = marginals(batch, state.posterior, here.setting.features)
        before = scored(state.plain, batch, at_rows)
        begin = here if start is None or start is state.model else episode.trial(start)
        learned = episode.learn(begin, self.learning if learn else None)
        trial, fit = learned.trial, learned.fit
        after = state.replace(
            model=trial.wrapped, absorbed=episode.told(learned), heard=episode.heard
        )
        # What the step has computed on the way need not be computed again. The site and q(v) are
        # read from the past all the same: a state from a file then goes on with the same bits.
        vars(after).update(plain=trial.setting.model, prior=trial.prior)
        bound = fit.bound - state.posterior.log_evidence
        bound += state.absorbed.beside(trial.reading) - state.absorbed.beside(state.reading)
        work = (learned.e_rounds, learned.m_evaluations)
        return after, Info(bound, before, *work, after.is_finite(state))

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
        batch = done.setting.batch
        told = state.absorbed + absorbed(done.setting, done.rows, done.projection)
        heard = Episode(state, batch, self._options).heard
        after = state.replace(absorbed=told, heard=heard)
        vars(after).update(plain=state.plain, prior=state.prior, reading=state.reading)
        return after, scored(state.plain, batch, done.before)

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
        return episode.bound(trial, first_sites(trial.setting))

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
