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
from jaxtyping import Array, Float, Int, PyTree

from streamgp.data import Batch
from streamgp.generative import Generative
from streamgp.inference import memory
from streamgp.inference.bounds import expected_log_density
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
from streamgp.inference.estep import Fit, blank_fit, e_step, exact_sites, first_sites, fit_rows
from streamgp.inference.memory import Memory
from streamgp.inference.mstep import maximise
from streamgp.inference.sites import RowSites, Site, empty
from streamgp.linalg import solve_lower
from streamgp.mixing import Features, mix
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
    memory: Memory  # of how past data depend on the hyperparameters


class Info(NamedTuple):
    """What happened in a step."""

    bound: Float[Array, ""]  # L_C of the batch: the first batch's is the ordinary ELBO
    log_predictive: Float[Array, " N"]  # of each row, before learning from it
    e_rounds: Int[Array, ""]
    m_evaluations: Int[Array, ""]


class Learner(eqx.Module):
    """How updates are made. `learning=None` leaves hyperparameters alone."""

    learning: VEM | None = VEM()
    carry: Carry = Projection()
    factorised: bool = eqx.field(static=True, default=False)
    e_rounds: int = eqx.field(static=True, default=100)
    e_tolerance: float = eqx.field(static=True, default=1e-4)

    def init(self, model: Generative, inducing: Inducing) -> State:
        """The state before any data."""
        latents, slots = inducing.mask.shape
        blocks, size = (latents, slots) if self.factorised else (1, latents * slots)
        return State(model, inducing, empty(blocks, size), memory.blank(model))

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
        fit, remembered = learned.fit, state.memory
        if self.learning is not None:
            remembered = remembered.recentred(learned.model, state.model)
            remembered += self._remember(learned.model, past, batch, fit)
        bound = fit.bound - condition(state.site).log_evidence
        info = Info(bound, before, learned.e_rounds, learned.m_evaluations)
        return State(learned.model, state.inducing, fit.site, remembered), info

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
        rows = features(model, inducing, chol, batch.x, batch.channel, factorised=self.factorised)
        return _Setting(model, rows, rewhitened(past.state.site, past.chol, chol))

    def _learn(self, past: "_Past", batch: Batch, start: Generative) -> "_Learned":
        """Alternate E and M steps, ending with an E step.

        Each stands in the program once. A collapsed bound needs no E step: its sites are exact.
        """
        begin = self._begin(start, past, batch)
        if start.conjugate and not self.factorised:
            learned = begin if self.learning is None else self._m(begin, past, batch)
            return learned._replace(fit=self._fit(learned.model, past, batch, begin.fit.rows))
        if self.learning is None:
            return self._e(begin, past, batch)
        rounds, (dynamic, static) = self.learning.rounds, eqx.partition(begin, eqx.is_array)

        def alternate(index: Int[Array, ""], loop: PyTree) -> PyTree:
            fitted = self._e(eqx.combine(loop, static), past, batch)
            return jax.lax.cond(
                index < rounds,
                lambda: eqx.filter(self._m(fitted, past, batch), eqx.is_array),
                lambda: eqx.filter(fitted, eqx.is_array),
            )

        return eqx.combine(jax.lax.fori_loop(0, rounds + 1, alternate, dynamic), static)

    def _begin(self, start: Generative, past: "_Past", batch: Batch) -> "_Learned":
        """Nothing learned yet: rows have the sites that their likelihoods begin with."""
        setting = self._setting(start, past, batch)
        rows = first_sites(setting.model, batch, setting.features, setting.carried)
        fit = blank_fit(setting.model, batch, setting.features, setting.carried, rows)
        return _Learned(start, fit, jnp.asarray(0), jnp.asarray(0))

    def _fit(self, wrapped: Generative, past: "_Past", batch: Batch, rows: RowSites) -> Fit:
        """What these hyperparameters make of these row sites."""
        setting = self._setting(wrapped, past, batch)
        rows = exact_sites(setting.model, batch, setting.features, rows)
        return fit_rows(setting.model, batch, setting.features, setting.carried, rows)

    def _e(self, now: "_Learned", past: "_Past", batch: Batch) -> "_Learned":
        setting = self._setting(now.model, past, batch)
        fit, more = e_step(
            setting.model, batch, setting.features, setting.carried, now.fit.rows,
            rounds=self.e_rounds, tolerance=self.e_tolerance,
        )  # fmt: skip
        return now._replace(fit=fit, e_rounds=now.e_rounds + more)

    def _m(self, now: "_Learned", past: "_Past", batch: Batch) -> "_Learned":
        assert self.learning is not None
        trainable, rest = split(now.model)
        best, more = maximise(
            lambda point: self._objective(eqx.combine(point, rest), past, batch, now.fit.rows),
            trainable,
            evaluations=self.learning.evaluations,
        )
        model = eqx.combine(best, rest)
        return now._replace(model=model, m_evaluations=now.m_evaluations + more)

    def _objective(
        self, wrapped: Generative, past: "_Past", batch: Batch, rows: RowSites
    ) -> Float[Array, ""]:
        """Bound, priors and memory per observation, with the rows' sites held.

        Holding sites rather than q follows the posterior as hyperparameters move, a tighter
        bound than plain variational EM's (Adam et al., 2021).
        """
        fit = self._fit(wrapped, past, batch, rows)
        remembered = past.state.memory.value(wrapped, past.state.model)
        total = fit.bound + self._log_prior(wrapped, past, batch) + remembered
        return total / jnp.maximum(jnp.sum(batch.mask), 1)

    def _log_prior(self, wrapped: Generative, past: "_Past", batch: Batch) -> Float[Array, ""]:
        """The priors, but of channels without data: those stay as they started."""
        heard = memory.heard(past.state.memory, wrapped)
        heard = heard.at[batch.channel].add(batch.mask)
        priors = jnp.stack([log_prior(channel) for channel in wrapped.channels])
        return log_prior(wrapped.kernels) + jnp.sum(jnp.where(heard > 0, priors, 0.0))

    def _remember(self, wrapped: Generative, past: "_Past", batch: Batch, fit: Fit) -> Memory:
        """How the batch's expected log-density depends on the hyperparameters, q(u) fixed."""
        inducing, learned = past.state.inducing, paramax.unwrap(wrapped)
        whitener = factorise(learned, inducing)

        def expected(other: Generative) -> Float[Array, ""]:
            model = paramax.unwrap(other)
            chol = factorise(model, inducing)
            projection, variance = project(model, inducing, chol, batch.x)
            # f as a map of values whitened as q is: u = L_learned·v.
            back = solve_lower(chol, projection, transpose=True)
            regression = jnp.swapaxes(whitener, -1, -2) @ back
            rows = mix(model, batch.channel, regression, variance, factorised=self.factorised)
            return expected_log_density(model, batch, marginals(fit.posterior, rows))

        projected = project(learned, inducing, whitener, batch.x)
        latent = marginals(fit.posterior, latent_features(*projected, factorised=self.factorised))
        return memory.joined(
            memory.expand_kernels(expected, wrapped),
            memory.expand_channels(wrapped, batch, fit.rows, fit.marginals, latent),
        )


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
    """How far learning has come: hyperparameters (wrapped), the fit, and counts of the work."""

    model: Generative
    fit: Fit
    e_rounds: Int[Array, ""]
    m_evaluations: Int[Array, ""]
