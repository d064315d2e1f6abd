"""The functional core: init, step, predict. Pure functions of a state; jit and vmap them freely.

    state = learner.init(model, inducing)
    state, info = learner.step(state, batch)
    mean, covariance = learner.predict(state, x, channel)

Call them in double precision (`with jax.enable_x64(True)`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Bool, Float, Int

from streamgp.data import Batch
from streamgp.inference import memory
from streamgp.inference.carry import Carry, Projection
from streamgp.inference.conditioning import (
    Inducing,
    Posterior,
    condition,
    factorise,
    features,
    joint,
    marginals,
)
from streamgp.inference.refinement import refine_points
from streamgp.inference.sequential import filter_rows
from streamgp.inference.sites import empty
from streamgp.inference.state import Info, State
from streamgp.inference.vem import VEM, Episode, Options, counted, remember_channels
from streamgp.model.multitask import Generative
from streamgp.registry import storable

__all__ = ["VEM", "Info", "Learner", "State"]


@storable
class Learner(eqx.Module):
    """How updates are made. `learning=None` leaves hyperparameters alone."""

    learning: VEM | None = VEM()
    carry: Carry = Projection()
    factorised: bool = eqx.field(static=True, default=False)
    e_rounds: int = eqx.field(static=True, default=100)
    e_tolerance: float = eqx.field(static=True, default=1e-4)

    @property
    def _options(self) -> Options:
        return Options(self.factorised, self.e_rounds, self.e_tolerance)

    def init(self, model: Generative, inducing: Inducing) -> State:
        """The state before any data."""
        latents, slots = inducing.mask.shape
        blocks, size = (latents, slots) if self.factorised else (1, latents * slots)
        nothing = jnp.asarray(np.zeros(()))
        return State(
            model=model,
            inducing=inducing,
            site=empty(blocks, size),
            memory=memory.blank(model),
            count=nothing,
            energy=nothing,
        )

    def move(self, state: State, inducing: Inducing) -> State:
        """The same knowledge at other inducing points, by the learner's rule of carrying."""
        model = paramax.unwrap(state.model)
        site = self.carry(model, state.inducing, state.site, inducing)
        return state.replace(inducing=inducing, site=site)

    def refined(
        self, state: State, batch: Batch, fresh: Bool[Array, "Q M"], start: Generative,
        *, evaluations: int,
    ) -> State:  # fmt: skip
        """The state with its `fresh` points, which carry no site yet, where they serve best."""
        points = refine_points(state, batch, start, fresh, self._options, evaluations=evaluations)
        return eqx.tree_at(lambda s: s.inducing, state, points)

    def tempered(self, state: State, share: Float[Array, ""] | float) -> State:
        """The state with that share of all it was told: the prior's part is untouched."""
        told = {
            "site": state.site,
            "memory": state.memory,
            "count": state.count,
            "energy": state.energy,
        }
        return state.replace(**jax.tree.map(lambda leaf: share * leaf, told))

    def step(
        self, state: State, batch: Batch, start: Generative | None = None, *, learn: bool = True
    ) -> tuple[State, Info]:
        """Fold a batch in; with `learn`, and a rule of learning, hyperparameters as well.

        `start` are hyperparameters to begin from, if not the state's own. A batch whose rows are
        all padding learns hyperparameters from what is carried.
        """
        before = self.log_predictive(state, batch)
        chol = factorise(paramax.unwrap(state.model), state.inducing)
        episode = Episode(state, chol, batch, self._options)
        learned = episode.learn(start or state.model, self.learning if learn else None)
        fit, remembered = learned.fit, state.memory
        if self.learning is not None:
            remembered = remembered.recentred(learned.model, state.model)
            remembered += episode.remember(learned.model, fit, kernels=learn)
        said = episode.of_noise(learned.model) - episode.of_noise(state.model)
        bound = fit.bound + said - condition(state.site).log_evidence
        setting = episode.setting(learned.model)
        count, energy = counted(state, setting.model, batch, setting.features)
        after = state.replace(
            model=learned.model, site=fit.site, memory=remembered, count=count, energy=energy
        )
        work = (learned.e_rounds, learned.m_evaluations)
        return after, Info(bound, before, *work, after.is_finite())

    def filter(self, state: State, batch: Batch) -> tuple[State, Float[Array, " N"]]:
        """Fold the rows of a batch in one by one, in order, at fixed hyperparameters.

        The state is that of as many steps of one row each; beside it, the log predictive density
        of each row before it was learned. For joint sites only.
        """
        model = paramax.unwrap(state.model)
        chol = factorise(model, state.inducing)
        done = filter_rows(
            model, state.inducing, chol, state.site, batch,
            rounds=self.e_rounds, tolerance=self.e_tolerance,
        )  # fmt: skip
        scores = _scores(model, batch, done.before.mean, done.before.covariance)
        remembered = state.memory
        if self.learning is not None:
            remembered += memory.joined(
                memory.blank(state.model.kernels),
                remember_channels(state.model, batch, done.rows, done.after, done.latent),
            )
        count, energy = counted(state, model, batch, done.features)
        after = state.replace(site=done.site, memory=remembered, count=count, energy=energy)
        return after, scores

    def condition(self, state: State) -> Posterior:
        """q(v), for repeated predictions."""
        return condition(state.site)

    def predict(
        self,
        state: State,
        x: Float[Array, "N P"],
        channel: Int[Array, " N"],
    ) -> tuple[Float[Array, "N J"], Float[Array, "N J J"]]:
        """Mean and covariance of the latent parameters f of that channel at each row."""
        model = paramax.unwrap(state.model)
        chol = factorise(model, state.inducing)
        rows = features(model, state.inducing, chol, x, channel, factorised=self.factorised)
        at_rows = marginals(self.condition(state), rows)
        return at_rows.mean, at_rows.covariance

    def predict_joint(
        self,
        state: State,
        x: Float[Array, "N P"],
        channel: Int[Array, " N"],
    ) -> tuple[Float[Array, "N J"], Float[Array, "N J N J"]]:
        """As `predict`, with the covariances between the rows: N²J² numbers."""
        model = paramax.unwrap(state.model)
        chol = factorise(model, state.inducing)
        posterior = self.condition(state)
        return joint(model, state.inducing, chol, posterior, x, channel, factorised=self.factorised)

    def log_predictive(self, state: State, batch: Batch) -> Float[Array, " N"]:
        """log p(y) of each row, nothing learned; zero for padding."""
        mean, covariance = self.predict(state, batch.x, batch.channel)
        return _scores(paramax.unwrap(state.model), batch, mean, covariance)


def _scores(
    model: Generative, batch: Batch, mean: Float[Array, "N J"], covariance: Float[Array, "N J J"]
) -> Float[Array, " N"]:
    return model.per_row(
        lambda likelihood, *row: likelihood.log_predictive(*row), batch, mean, covariance
    )
