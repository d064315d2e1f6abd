"""What learning makes as large as possible: the evidence of all kept rows, priors included."""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Group
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.e_step import counted, exact_sites
from streamgp.inference.gradients import by_channels
from streamgp.inference.m_step import Answer, Vector
from streamgp.inference.over_time.numbers import Numbers
from streamgp.inference.over_time.states import Rows
from streamgp.inference.over_time.window import Window, World
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.parameters import free_gradient, free_size, free_vector, unwrap, with_free


@dataclasses.dataclass(frozen=True, eq=False)
class RowObjective:
    """The evidence of rows under other hyperparameters, per observation.

    Sites of rows that are not conjugate are held. So are the marginals by which parameters of their
    likelihoods are judged.

    Attributes:
        wrapped: The model whose hyperparameters are moved.
        window: All rows, under any hyperparameters.
        held: The sites of those that are not conjugate.
        beliefs: What is believed of hyperparameters beside.
        at_rows: q(f) at the rows; None if all are conjugate.
    """

    wrapped: MultiTaskGP
    window: Window
    held: RowSites
    beliefs: Beliefs
    at_rows: Marginals | None = None

    def __call__(self, theta: Vector) -> Answer:
        """Value and gradient at free parameters."""
        return self.beliefs.objective(theta, *self.evidence(theta))

    def evidence(self, theta: Vector) -> Answer:
        """What rows say of hyperparameters, up to a constant, and its gradient; no priors."""
        there = with_free(self.wrapped, theta)
        world = World(unwrap(there), self.window.world.least)
        window = dataclasses.replace(self.window, world=world)
        sites = exact_sites(window, self.held)
        scalars = window.scalars(sites)
        found = world.states.evidence(scalars)
        value = found.value + self._held_value(scalars)
        by_log_strength, more = np.zeros(len(there.channels)), {}
        by_precision = -found.by_noise * scalars.noise**2
        for group in self._conjugate:
            own, by = self._conjugate_part(world.model, group, by_precision, scalars)
            value += own
            likelihood = world.model.channels[group.channel].likelihood
            if likelihood.scales_sites:
                by_log_strength[group.channel] += float(
                    by @ (1.0 / scalars.noise[self._rows_of(group)])
                )
            else:
                more[group.channel] = self._by_parameters(likelihood, group, window, by)
        by_channel = by_channels(world.model, found.by_loadings, by_log_strength)
        for channel, parameters in more.items():
            by_channel[channel]["likelihood"] = parameters
        if self.at_rows is not None:
            value += self._of_likelihoods(there, world.model, by_channel)
        by_kernels = found.by_numbers @ self.numbers.jacobian(free_vector(there.kernels))
        of_channels = free_gradient(there.channels, tuple(by_channel))
        return value, np.concatenate([by_kernels, of_channels])

    @functools.cached_property
    def numbers(self) -> Numbers:
        """How the kernels' states depend on their parameters."""
        return Numbers(self.wrapped)

    @functools.cached_property
    def _conjugate(self) -> tuple[Group, ...]:
        channels = self.wrapped.channels
        groups = self.window.batch.groups
        return tuple(
            group
            for group in groups
            if channels[group.channel].likelihood.conjugate and group.is_observed
        )

    @functools.cached_property
    def _is_held(self) -> Float[np.ndarray, " n"]:
        """One for scalar rows whose sites are held, zero for those of conjugate channels."""
        found = np.ones(self.window.batch.size)
        for group in self._conjugate:
            found[self.window.batch.order[group.rows]] = 0.0
        if not self.window.world.mixes:
            return found
        latents = [channel.likelihood.latents for channel in self.window.model.channels]
        own = self.window.batch.as_they_came(np.take(latents, self.window.batch.channel))
        return np.repeat(found, own)

    @functools.cached_property
    def _first_scalars(self) -> np.ndarray:
        """Where the scalar rows of each row begin, in the order of time."""
        batch = self.window.batch
        latents = [channel.likelihood.latents for channel in self.window.model.channels]
        own = batch.as_they_came(np.take(latents, batch.channel))
        return np.cumsum(own) - own

    def _rows_of(self, group: Group) -> np.ndarray:
        """The scalar rows of a conjugate channel, which has one per row."""
        return self._first_scalars[self.window.batch.order[group.rows]]

    def _held_value(self, scalars: Rows) -> float:
        """What held sites have over the densities of their scalar rows, which never changes."""
        noise, value = scalars.noise, scalars.value
        beside = self._is_held * (np.log(2 * np.pi * noise) + value**2 / noise)
        return 0.5 * float(np.sum(beside))

    def _conjugate_part(
        self, model: MultiTaskGP, group: Group, by_precision: np.ndarray, scalars: Rows
    ) -> tuple[float, Float[np.ndarray, " n"]]:
        """What a channel's rows say beside their densities as scalar rows; all by their precision.

        A row of n observations has the likelihood of n: with P of all and P₁ of each,
        ½(n − 1)·log P₁ − ½P₁·energy is left over.
        """
        batch, rows = self.window.batch, self._rows_of(group)
        precision, count = 1.0 / scalars.noise[rows], self._counts[group.channel]
        own = 0.5 * (count - 1) * np.log(precision / count)
        by = by_precision[rows] + 0.5 * (count - 1) / precision
        if batch.energy is not None:
            energy = batch.energy[group.rows] / count
            own, by = own - 0.5 * energy * precision, by - 0.5 * energy
        return float(np.sum(own)), by

    @functools.cached_property
    def _counts(self) -> dict[int, Float[np.ndarray, " n"]]:
        """How many observations each row of a conjugate channel stands for, weights included."""
        batch, found = self.window.batch, {}
        sites = exact_sites(self.window, self.held).precision
        for group in self._conjugate:
            likelihood = self.window.model.channels[group.channel].likelihood
            if likelihood.scales_sites:
                own = sites[group.run][group.within][:, 0, 0] / likelihood.strength
                found[group.channel] = np.maximum(own, 1e-300)
            else:
                found[group.channel] = (
                    np.ones(len(group.y)) if batch.count is None else batch.count[group.rows]
                )
        return found

    def _by_parameters(
        self, likelihood: Likelihood, group: Group, window: Window, by: Float[np.ndarray, " n"]
    ) -> dict[str, Any]:
        """By parameters of a conjugate family whose noise is no common factor of its sites."""
        offset = window.features.offset[group.flat].reshape(-1, 1)
        nothing = np.zeros(offset.shape)
        _, matrix = counted(window.batch, group, nothing, by[:, None, None])
        return likelihood.site_gradient(group.y, offset, nothing, matrix)

    def _of_likelihoods(
        self, wrapped: MultiTaskGP, model: MultiTaskGP, by_channel: list[dict[str, Any]]
    ) -> float:
        """Σ E_q[log p] of rows in parameters of their likelihoods, q held; and its gradient."""
        assert self.at_rows is not None
        value, batch = 0.0, self.window.batch
        groups = of_groups(model, batch, self.at_rows.mean, self.at_rows.covariance)
        for group, likelihood, mean, covariance in groups:
            is_free = free_size(wrapped.channels[group.channel].likelihood) > 0
            if likelihood.conjugate or not is_free:
                continue
            own = likelihood.expected(group.y, mean, covariance).value
            if batch.count is None:
                by = likelihood.expected_parameter_gradient(group.y, mean, covariance)
            else:
                count = batch.count[group.rows]
                own = count * own
                by = _summed(likelihood.expected_parameter_rows(group.y, mean, covariance), count)
            value += float(np.sum(own))
            by_channel[group.channel]["likelihood"] = by
        return value


def _summed(rows: dict[str, Any], count: Float[np.ndarray, " n"]) -> dict[str, Any]:
    """Derivatives of rows, each so often, added up."""
    return {
        name: _summed(part, count) if isinstance(part, dict) else np.tensordot(count, part, 1)
        for name, part in rows.items()
    }
