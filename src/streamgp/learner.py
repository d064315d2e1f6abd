"""The functional core: init, step, predict. Pure functions of a state; jit and vmap them freely.

    state = learner.init(model, inducing)
    state, info = learner.step(state, batch)
    mean, covariance = learner.predict(state, x, channel)

Call them in double precision (`with jax.enable_x64(True)`).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jaxtyping import Array, Float, Int

from streamgp.data import Batch
from streamgp.generative import Generative
from streamgp.inference import memory
from streamgp.inference.carry import Carry, Projection, rewhitened
from streamgp.inference.conditioning import (
    Inducing,
    Posterior,
    condition,
    factorise,
    features,
    latent_features,
    marginals,
    project,
)
from streamgp.inference.estep import Fit, e_step, exact_sites, fit_rows
from streamgp.inference.mstep import maximise
from streamgp.inference.sites import RowSites, Site, aggregate, empty
from streamgp.mixing import Features
from streamgp.parameters import log_prior, split


class VEM(eqx.Module):
    """Variational EM: how hyperparameters are learned at every update.

    `rounds` alternations of E and M step (one is enough when every channel is conjugate: the
    bound is then collapsed), each M step of at most `evaluations` of the bound and its gradient.
    """

    rounds: int = eqx.field(static=True, default=2)
    evaluations: int = eqx.field(static=True, default=40)


class State(eqx.Module):
    """All that is kept of the past. No data, and nothing that can be derived."""

    model: Generative  # parameters still wrapped: constrained, with priors
    inducing: Inducing
    site: Site  # whitened by the prior under `model` at `inducing`
    memory: Float[Array, "T T"]  # H, curvature of past data in the channels' parameters


class Info(NamedTuple):
    """What happened in a step."""

    bound: Float[Array, ""]  # L_C of the batch: the first batch's is the ordinary ELBO
    log_predictive: Float[Array, " N"]  # of each row, before learning from it
    e_rounds: Int[Array, ""]
    m_steps: Int[Array, ""]


class Learner(eqx.Module):
    """How updates are made. `learning=None` leaves hyperparameters alone."""

    learning: VEM | None = VEM()
    carry: Carry = Projection()
    factorised: bool = eqx.field(static=True, default=False)
    e_rounds: int = eqx.field(static=True, default=30)
    e_tolerance: float = eqx.field(static=True, default=1e-4)

    def init(self, model: Generative, inducing: Inducing) -> State:
        """The state before any data."""
        latents, slots = inducing.mask.shape
        blocks, size = (latents, slots) if self.factorised else (1, latents * slots)
        guarded = memory.guarded(model).size
        return State(model, inducing, empty(blocks, size), jnp.zeros((guarded, guarded)))

    def move(self, state: State, inducing: Inducing) -> State:
        """The same knowledge at other inducing points, by the learner's rule of carrying."""
        model = paramax.unwrap(state.model)
        site = self.carry(model, state.inducing, state.site, inducing)
        return State(state.model, inducing, site, state.memory)

    def step(
        self, state: State, batch: Batch, start: Generative | None = None
    ) -> tuple[State, Info]:
        """Fold a batch in. `start` are hyperparameters to begin from, if not the state's own."""
        before = self._log_predictive(state, batch)
        past = _Past(state, factorise(paramax.unwrap(state.model), state.inducing))
        learned = self._learn(past, batch, start or state.model)
        setting, fit = learned.setting, learned.fit
        remembered = state.memory
        if self.learning is not None:
            remembered += self._curvature(learned.model, past, batch, fit.posterior)
        site = setting.carried + aggregate(fit.rows, setting.features)
        bound = fit.bound - condition(state.site).log_evidence
        info = Info(bound, before, learned.e_rounds, learned.m_steps)
        return State(learned.model, state.inducing, site, remembered), info

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
        rows = features(
            model, state.inducing, chol, x, channel, factorised=self.factorised
        )
        at_rows = marginals(self.condition(state), rows)
        return at_rows.mean, at_rows.covariance

    # -- the parts of a step -------------------------------------------------------------------

    def _log_predictive(self, state: State, batch: Batch) -> Float[Array, " N"]:
        mean, covariance = self.predict(state, batch.x, batch.channel)
        return paramax.unwrap(state.model).per_row(
            lambda likelihood, *row: likelihood.log_predictive(*row), batch, mean, covariance
        )

    def _setting(self, wrapped: Generative, past: "_Past", batch: Batch) -> "_Setting":
        model = paramax.unwrap(wrapped)
        inducing = past.state.inducing
        chol = factorise(model, inducing)
        rows = features(
            model, inducing, chol, batch.x, batch.channel, factorised=self.factorised
        )
        return _Setting(model, rows, rewhitened(past.state.site, past.chol, chol))

    def _learn(self, past: "_Past", batch: Batch, start: Generative) -> "_Learned":
        """Alternate E and M steps, ending with an E step."""
        rows = self._no_rows(past.state, batch)
        if self.learning is None:
            return self._expect(start, past, batch, rows)
        trainable, rest = split(start)
        collapsed = start.conjugate and not self.factorised

        def alternate(_: int, loop: tuple) -> tuple:
            point, rows, e_rounds, m_steps = loop
            if not collapsed:  # a collapsed bound has no use for an E step before the M step
                fitted = self._expect(eqx.combine(point, rest), past, batch, rows)
                rows, e_rounds = fitted.fit.rows, e_rounds + fitted.e_rounds
            point, more = maximise(
                lambda p: self._objective(eqx.combine(p, rest), past, batch, rows),
                point,
                evaluations=self.learning.evaluations,
            )
            return point, rows, e_rounds, m_steps + more

        begin = (trainable, rows, jnp.asarray(0), jnp.asarray(0))
        rounds = 1 if collapsed else self.learning.rounds
        point, rows, e_rounds, m_steps = jax.lax.fori_loop(0, rounds, alternate, begin)
        last = self._expect(eqx.combine(point, rest), past, batch, rows)
        return last._replace(e_rounds=last.e_rounds + e_rounds, m_steps=m_steps)

    def _expect(
        self, wrapped: Generative, past: "_Past", batch: Batch, rows: RowSites
    ) -> "_Learned":
        """An E step from these row sites on."""
        setting = self._setting(wrapped, past, batch)
        fit, rounds = e_step(
            setting.model, batch, setting.features, setting.carried, rows,
            rounds=self.e_rounds, tolerance=self.e_tolerance,
        )  # fmt: skip
        return _Learned(wrapped, setting, fit, rounds, jnp.asarray(0))

    def _objective(
        self, wrapped: Generative, past: "_Past", batch: Batch, rows: RowSites
    ) -> Float[Array, ""]:
        """Bound, priors and memory per observation, with the rows' sites held.

        Holding sites rather than q follows the posterior as hyperparameters move, a tighter
        bound than plain variational EM's (Adam et al., 2021).
        """
        setting = self._setting(wrapped, past, batch)
        rows = exact_sites(setting.model, batch, setting.features, rows)
        fit = fit_rows(setting.model, batch, setting.features, setting.carried, rows)
        pull = memory.pull(past.state.memory, wrapped, past.state.model)
        return (fit.bound + log_prior(wrapped) - pull) / jnp.maximum(jnp.sum(batch.mask), 1)

    def _no_rows(self, state: State, batch: Batch) -> RowSites:
        rows, latents = len(batch.y), state.model.most_latents
        blocks = len(state.site.linear)
        return RowSites(jnp.zeros((rows, latents, blocks)), jnp.zeros((rows, latents, latents)))

    def _curvature(
        self, wrapped: Generative, past: "_Past", batch: Batch, posterior: Posterior
    ) -> Float[Array, "T T"]:
        model, inducing = paramax.unwrap(wrapped), past.state.inducing
        projected = project(model, inducing, factorise(model, inducing), batch.x)
        at_rows = marginals(posterior, latent_features(*projected, factorised=self.factorised))
        return memory.curvature(wrapped, batch, at_rows.mean, at_rows.covariance)


class _Past(NamedTuple):
    """The state an update starts from, with the prior factor its site is whitened by."""

    state: State
    chol: Float[Array, "Q M M"]


class _Setting(NamedTuple):
    """What a choice of hyperparameters implies for a batch, before its own sites."""

    model: Generative  # unwrapped
    features: Features
    carried: Site


class _Learned(NamedTuple):
    """The end of an E step, and the count of what led there."""

    model: Generative  # wrapped
    setting: _Setting
    fit: Fit
    e_rounds: Int[Array, ""]
    m_steps: Int[Array, ""]
