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
from streamgp.inference import memory, noise
from streamgp.inference.bounds import expected_log_density
from streamgp.inference.carry import Carry, Projection, rewhitened
from streamgp.inference.conditioning import (
    Inducing,
    Marginals,
    Posterior,
    condition,
    factorise,
    features,
    latent_features,
    marginals,
    project,
)
from streamgp.inference.estep import Fit, blank_fit, e_step, exact_sites, first_sites, fit_rows
from streamgp.inference.filtering import filter_rows
from streamgp.inference.memory import Memory
from streamgp.inference.mstep import maximise
from streamgp.inference.sites import RowSites, Site, empty
from streamgp.linalg import solve_lower
from streamgp.mixing import Features, mix
from streamgp.parameters import log_prior, split

_ORDINARY_BATCH = 100


class VEM(eqx.Module):
    """Variational EM: how hyperparameters are learned at every update.

    `rounds` alternations of E and M step (one is enough when every channel is conjugate: the
    bound is then collapsed), each M step of at most `evaluations` of the bound and its gradient.
    Updates learn hyperparameters once `every` observations have come since they last did, sooner
    while there are few: a larger batch always does, a stream of single samples now and then.
    """

    rounds: int = eqx.field(static=True, default=2)
    evaluations: int = eqx.field(static=True, default=40)
    every: int = eqx.field(static=True, default=100)

    def is_due(self, seen: int, learned_at: int) -> bool:
        """Whether `seen` observations call for an M step, the last one having been at so many.

        One every `every` observations; early on, whenever there are half as many more.
        """
        return seen >= learned_at + self._pause(learned_at)

    def until_due(self, seen: int, learned_at: int) -> int:
        """How many more observations make the next M step due; at least one."""
        return max(learned_at + self._pause(learned_at) - seen, 1)

    def _pause(self, learned_at: int) -> int:
        return max(min(self.every, learned_at // 2), 1)


class State(eqx.Module):
    """All that is kept of the past. No data, and nothing that can be derived."""

    model: Generative  # parameters still wrapped: constrained, with priors
    inducing: Inducing
    site: Site  # whitened by the prior under `model` at `inducing`
    memory: Memory  # of how past data depend on the hyperparameters
    count: Float[Array, ""]  # observations it stands for, faded ones in part
    energy: Float[Array, ""]  # their squares about the offset; for the noise of a lone channel


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
        return State(model, inducing, empty(blocks, size), memory.blank(model), *jnp.zeros(2))

    def move(self, state: State, inducing: Inducing) -> State:
        """The same knowledge at other inducing points, by the learner's rule of carrying."""
        model = paramax.unwrap(state.model)
        site = self.carry(model, state.inducing, state.site, inducing)
        return State(state.model, inducing, site, state.memory, state.count, state.energy)

    def tempered(self, state: State, share: Float[Array, ""] | float) -> State:
        """The state with that share of all it was told: the prior's part is untouched."""
        told = (state.site, state.memory, state.count, state.energy)
        return State(state.model, state.inducing, *jax.tree.map(lambda leaf: share * leaf, told))

    def step(
        self, state: State, batch: Batch, start: Generative | None = None, *, learn: bool = True
    ) -> tuple[State, Info]:
        """Fold a batch in; with `learn`, and a rule of learning, hyperparameters as well.

        `start` are hyperparameters to begin from, if not the state's own. A batch whose rows are
        all padding learns hyperparameters from what is carried.
        """
        before = self.log_predictive(state, batch)
        past = _Past(state, factorise(paramax.unwrap(state.model), state.inducing))
        rule = self.learning if learn else None
        learned = self._learn(past, batch, start or state.model, rule)
        fit, remembered = learned.fit, state.memory
        if self.learning is not None:
            remembered = remembered.recentred(learned.model, state.model)
            remembered += self._remember(learned.model, past, batch, fit, kernels=learn)
        said = self._of_noise(learned.model, past) - self._of_noise(state.model, past)
        bound = fit.bound + said - condition(state.site).log_evidence
        info = Info(bound, before, learned.e_rounds, learned.m_evaluations)
        setting = self._setting(learned.model, past, batch)
        counts = self._counted(state, setting.model, batch, setting.features)
        return State(learned.model, state.inducing, fit.site, remembered, *counts), info

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
                self._remember_channels(state.model, batch, done.rows, done.after, done.latent),
            )
        counts = self._counted(state, model, batch, done.features)
        return State(state.model, state.inducing, done.site, remembered, *counts), scores

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

    def log_predictive(self, state: State, batch: Batch) -> Float[Array, " N"]:
        """log p(y) of each row, nothing learned; zero for padding."""
        mean, covariance = self.predict(state, batch.x, batch.channel)
        return _scores(paramax.unwrap(state.model), batch, mean, covariance)

    # -- the parts of a step -------------------------------------------------------------------

    def _setting(self, wrapped: Generative, past: "_Past", batch: Batch) -> "_Setting":
        model = paramax.unwrap(wrapped)
        inducing = past.state.inducing
        chol = factorise(model, inducing)
        rows = features(model, inducing, chol, batch.x, batch.channel, factorised=self.factorised)
        carried = rewhitened(past.state.site, past.chol, chol)
        if noise.is_exact(wrapped):
            carried = noise.rescaled(carried, paramax.unwrap(past.state.model), model)
        return _Setting(model, rows, carried)

    def _of_noise(self, wrapped: Generative, past: "_Past") -> Float[Array, ""]:
        """What the past says of a lone channel's noise, beside its site."""
        if not noise.is_exact(wrapped):
            return jnp.zeros(())
        return noise.past(paramax.unwrap(wrapped), past.state.count, past.state.energy)

    def _counted(
        self, state: State, model: Generative, batch: Batch, features: Features
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Count and energy with the batch's added."""
        count = state.count + jnp.sum(batch.mask)
        if not noise.is_exact(state.model):
            return count, state.energy
        return count, state.energy + noise.energy(model, batch, features)

    def _learn(
        self, past: "_Past", batch: Batch, start: Generative, rule: VEM | None
    ) -> "_Learned":
        """Alternate E and M steps, ending with an E step.

        Each stands in the program once. A collapsed bound needs no E step: its sites are exact.
        """
        begin = self._begin(start, past, batch)
        if start.conjugate and not self.factorised:
            learned = begin if rule is None else self._m(begin, past, batch, rule)
            return learned._replace(fit=self._fit(learned.model, past, batch, begin.fit.rows))
        if rule is None:
            return self._e(begin, past, batch)
        rounds, (dynamic, static) = rule.rounds, eqx.partition(begin, eqx.is_array)

        def alternate(index: Int[Array, ""], loop: PyTree) -> PyTree:
            fitted = self._e(eqx.combine(loop, static), past, batch)
            return jax.lax.cond(
                index < rounds,
                lambda: eqx.filter(self._m(fitted, past, batch, rule), eqx.is_array),
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

    def _m(self, now: "_Learned", past: "_Past", batch: Batch, rule: VEM) -> "_Learned":
        trainable, rest = split(now.model)
        best, more = maximise(
            lambda point: self._objective(eqx.combine(point, rest), past, batch, now.fit.rows),
            trainable,
            evaluations=rule.evaluations,
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
        total += self._of_noise(wrapped, past)
        # A small batch borrows from the past the size that makes the objective of order one.
        past_size = jnp.clip(past.state.count, 1, _ORDINARY_BATCH)
        return total / jnp.maximum(jnp.sum(batch.mask), past_size)

    def _log_prior(self, wrapped: Generative, past: "_Past", batch: Batch) -> Float[Array, ""]:
        """The priors, but of channels without data: those stay as they started."""
        heard = memory.heard(past.state.memory, wrapped)
        heard = heard.at[batch.channel].add(batch.mask)
        if len(wrapped.channels) == 1:
            heard += past.state.count
        priors = jnp.stack([log_prior(channel) for channel in wrapped.channels])
        return log_prior(wrapped.kernels) + jnp.sum(jnp.where(heard > 0, priors, 0.0))

    def _remember(
        self, wrapped: Generative, past: "_Past", batch: Batch, fit: Fit, *, kernels: bool
    ) -> Memory:
        """How the batch's expected log-density depends on the hyperparameters, q(u) fixed.

        Of the `kernels` it is worth its cost only when a whole batch is learned from.
        """
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
            memory.expand_kernels(expected, wrapped) if kernels else memory.blank(wrapped.kernels),
            self._remember_channels(wrapped, batch, fit.rows, fit.marginals, latent),
        )

    def _remember_channels(
        self,
        wrapped: Generative,
        batch: Batch,
        rows: RowSites,
        at_rows: Marginals,
        latent: Marginals,
    ) -> Memory:
        if noise.is_exact(wrapped):
            return memory.blank(wrapped.channels)
        return memory.expand_channels(wrapped, batch, rows, at_rows, latent)


def _scores(
    model: Generative, batch: Batch, mean: Float[Array, "N J"], covariance: Float[Array, "N J J"]
) -> Float[Array, " N"]:
    return model.per_row(
        lambda likelihood, *row: likelihood.log_predictive(*row), batch, mean, covariance
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
