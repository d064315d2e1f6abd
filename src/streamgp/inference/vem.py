"""Learning: what one update does with its batch.

Alternates E and M steps on the continual bound, and says what is to be remembered of the batch.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jaxtyping import Array, Float, Int, PyTree

from streamgp.data import Batch
from streamgp.inference import memory, noise
from streamgp.inference.bounds import expected_log_density
from streamgp.inference.carry import rewhitened
from streamgp.inference.conditioning import (
    Marginals,
    factorise,
    features,
    latent_features,
    marginals,
    project,
)
from streamgp.inference.e_step import Fit, blank_fit, e_step, exact_sites, first_sites, fit_rows
from streamgp.inference.m_step import FLAT, maximise
from streamgp.inference.memory import Memory
from streamgp.inference.sites import RowSites, Site, as_blocks
from streamgp.inference.state import State
from streamgp.model.mixing import Features
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import solve_lower
from streamgp.parameters import log_prior, split
from streamgp.registry import storable

_ORDINARY_BATCH = 100


@storable
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


class Options(NamedTuple):
    """How E steps are made."""

    factorised: bool
    e_rounds: int
    e_tolerance: float


class Setting(NamedTuple):
    """What a choice of hyperparameters implies for a batch, before its own sites."""

    model: Generative  # unwrapped
    features: Features
    carried: Site


class Learned(NamedTuple):
    """How far learning has come: hyperparameters (wrapped), the fit, and counts of the work."""

    model: Generative
    fit: Fit
    e_rounds: Int[Array, ""]
    m_evaluations: Int[Array, ""]


class Episode(NamedTuple):
    """A batch that meets a state; `chol` is the prior factor its site is whitened by."""

    state: State
    chol: Float[Array, "Q M M"]
    batch: Batch
    options: Options

    def setting(self, wrapped: Generative) -> Setting:
        model = paramax.unwrap(wrapped)
        inducing = self.state.inducing
        chol = factorise(model, inducing)
        rows = features(
            model,
            inducing,
            chol,
            self.batch.x,
            self.batch.channel,
            factorised=self.options.factorised,
        )
        carried = rewhitened(self.state.site, self.chol, chol)
        if noise.is_exact(wrapped):
            carried = noise.rescaled(carried, paramax.unwrap(self.state.model), model)
        return Setting(model, rows, carried)

    def of_noise(self, wrapped: Generative) -> Float[Array, ""]:
        """What the past says of a lone channel's noise, beside its site."""
        if not noise.is_exact(wrapped):
            return jnp.zeros(())
        return noise.past(paramax.unwrap(wrapped), self.state.count, self.state.energy)

    def learn(self, start: Generative, rule: VEM | None) -> Learned:
        """Alternate E and M steps, ending with an E step.

        Each stands in the program once. A collapsed bound needs no E step: its sites are exact.
        """
        begin = self._begin(start)
        if start.conjugate and not self.options.factorised:
            learned = begin if rule is None else self._m(begin, rule)
            return learned._replace(fit=self._fit(learned.model, begin.fit.rows))
        if rule is None:
            return self._e(begin, self.options.e_tolerance)
        # An M step that stops at such gains asks for no finer fit.
        early = jnp.maximum(self.options.e_tolerance, FLAT * jnp.sum(self.batch.mask))
        rounds, (dynamic, static) = rule.rounds, eqx.partition(begin, eqx.is_array)

        def alternate(index: Int[Array, ""], loop: PyTree) -> PyTree:
            tolerance = jnp.where(index < rounds, early, self.options.e_tolerance)
            fitted = self._e(eqx.combine(loop, static), tolerance)
            return jax.lax.cond(
                index < rounds,
                lambda: eqx.filter(self._m(fitted, rule), eqx.is_array),
                lambda: eqx.filter(fitted, eqx.is_array),
            )

        return eqx.combine(jax.lax.fori_loop(0, rounds + 1, alternate, dynamic), static)

    def _begin(self, start: Generative) -> Learned:
        """Nothing learned yet: rows have the sites that their likelihoods begin with."""
        setting = self.setting(start)
        rows = first_sites(setting.model, self.batch, setting.features, setting.carried)
        fit = blank_fit(setting.model, self.batch, setting.features, setting.carried, rows)
        return Learned(start, fit, jnp.asarray(0), jnp.asarray(0))

    def _fit(self, wrapped: Generative, rows: RowSites) -> Fit:
        """What these hyperparameters make of these row sites."""
        setting = self.setting(wrapped)
        rows = exact_sites(setting.model, self.batch, setting.features, rows)
        return fit_rows(setting.model, self.batch, setting.features, setting.carried, rows)

    def bound(self, wrapped: Generative, rows: RowSites) -> Float[Array, ""]:
        """The continual bound with the rows' sites held, where they are not exact."""
        return self._fit(wrapped, rows).bound

    def _e(self, now: Learned, tolerance: float | Float[Array, ""]) -> Learned:
        setting = self.setting(now.model)
        fit, more = e_step(
            setting.model, self.batch, setting.features, setting.carried, now.fit.rows,
            rounds=self.options.e_rounds, tolerance=tolerance,
        )  # fmt: skip
        return now._replace(fit=fit, e_rounds=now.e_rounds + more)

    def _m(self, now: Learned, rule: VEM) -> Learned:
        trainable, rest = split(now.model)
        best, more = maximise(
            lambda point: self._objective(eqx.combine(point, rest), now.fit.rows),
            trainable,
            evaluations=rule.evaluations,
        )
        model = eqx.combine(best, rest)
        return now._replace(model=model, m_evaluations=now.m_evaluations + more)

    def _objective(self, wrapped: Generative, rows: RowSites) -> Float[Array, ""]:
        """Bound, priors and memory per observation, with the rows' sites held.

        Holding sites rather than q follows the posterior as hyperparameters move, a tighter
        bound than plain variational EM's (Adam et al., 2021).
        """
        remembered = self.state.memory.value(wrapped, self.state.model)
        total = self.bound(wrapped, rows) + self._log_prior(wrapped) + remembered
        total += self.of_noise(wrapped)
        # A small batch borrows from the past the size that makes the objective of order one.
        past_size = jnp.clip(self.state.count, 1, _ORDINARY_BATCH)
        return total / jnp.maximum(jnp.sum(self.batch.mask), past_size)

    def _log_prior(self, wrapped: Generative) -> Float[Array, ""]:
        """The priors, but of channels without data: those stay as they started."""
        heard = memory.heard(self.state.memory, wrapped)
        heard = heard.at[self.batch.channel].add(self.batch.mask)
        if len(wrapped.channels) == 1:
            heard += self.state.count
        priors = jnp.stack([log_prior(channel) for channel in wrapped.channels])
        return log_prior(wrapped.kernels) + jnp.sum(jnp.where(heard > 0, priors, 0.0))

    def remember(self, wrapped: Generative, fit: Fit, *, kernels: bool) -> Memory:
        """How the batch's expected log-density depends on the hyperparameters, q(u) fixed.

        Of the `kernels` it is worth its cost only when a whole batch is learned from.
        """
        inducing, learned = self.state.inducing, paramax.unwrap(wrapped)
        factorised = self.options.factorised
        whitener = factorise(learned, inducing)

        def expected(other: Generative) -> Float[Array, ""]:
            model = paramax.unwrap(other)
            chol = factorise(model, inducing)
            x, channel = self.batch.x, self.batch.channel
            rows = features(model, inducing, chol, x, channel, factorised=factorised)
            # u = L_learned·v stays as it is; whitened by the other prior it is L⁻¹·L_learned·v.
            maps = as_blocks(solve_lower(chol, whitener), len(fit.posterior.mean))
            return expected_log_density(model, self.batch, marginals(fit.posterior, rows, maps))

        projected = project(learned, inducing, whitener, self.batch.x)
        latent = marginals(fit.posterior, latent_features(*projected, factorised=factorised))
        return memory.joined(
            memory.expand_kernels(expected, wrapped) if kernels else memory.blank(wrapped.kernels),
            remember_channels(wrapped, self.batch, fit.rows, fit.marginals, latent),
        )


def remember_channels(
    wrapped: Generative, batch: Batch, rows: RowSites, at_rows: Marginals, latent: Marginals
) -> Memory:
    """What a batch says of its channels' parameters, where the site does not say it."""
    if noise.is_exact(wrapped):
        return memory.blank(wrapped.channels)
    return memory.expand_channels(wrapped, batch, rows, at_rows, latent)


def counted(
    state: State, model: Generative, batch: Batch, features: Features
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The state's count and energy with the batch's added; `model` is unwrapped."""
    count = state.count + jnp.sum(batch.mask)
    if not noise.is_exact(state.model):
        return count, state.energy
    return count, state.energy + noise.energy(model, batch, features)
