"""A window: rows that follow one another, between what the filter knows before and after them.

A row's site exp(bᵀg − ½gᵀPg) on its latent parameters g, less their offsets, is that of scalar
rows: with P = Σ_k λ_k v_k v_kᵀ, each direction v_k was observed as v_kᵀb/λ_k with the noise 1/λ_k.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Batch
from streamgp.inference.e_step import exact_sites
from streamgp.inference.kept import Kept
from streamgp.inference.over_time.law import Law
from streamgp.inference.over_time.states import (
    ALONE,
    Around,
    Rows,
    States,
    StatesAt,
    joined,
)
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import NOTHING, RowSites
from streamgp.model.mixing import Features, Mixed, without_design
from streamgp.model.multitask import MultiTaskGP

_LEAST = 1e-7  # of what the prior knows of a latent parameter: rows are taken to say no less
_TOGETHER = 4_000_000  # numbers of states that are held at once


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """A plain model, and the states of its latent functions as the core has them.

    Attributes:
        model: The hyperparameters, plain.
        floor: The `least` precision of rows, if it is not to follow from the model: learning holds
            sites as they are.
    """

    model: MultiTaskGP
    floor: Float[np.ndarray, " O"] | None = None

    @functools.cached_property
    def law(self) -> Law:
        """How the states move."""
        return Law.of(self.model)

    @functools.cached_property
    def mixes(self) -> bool:
        """Whether a row may observe several latent parameters."""
        return any(channel.likelihood.latents > 1 for channel in self.model.channels)

    @functools.cached_property
    def loadings(self) -> Float[np.ndarray, "O Q"]:
        """Of each latent parameter on each latent function."""
        return np.concatenate([channel.loadings for channel in self.model.channels])

    @functools.cached_property
    def states(self) -> States:
        """The states, and what each latent parameter sees of them."""
        return States(self.law, self.loadings, self.model.basis_spreads(), mixes=self.mixes)

    @functools.cached_property
    def least(self) -> Float[np.ndarray, " O"]:
        """The least precision that rows of each latent parameter are taken to have.

        A site may pull without any curvature, but no scalar row does.
        """
        if self.floor is not None:
            return self.floor
        scale = np.concatenate([np.ravel(channel.scale) for channel in self.model.channels])
        variance = self.loadings**2 @ self.law.variance + scale**2
        conjugate = np.array([channel.likelihood.conjugate for channel in self.model.channels])
        least = _LEAST / variance
        return np.where(conjugate[self.model.outputs.channel], NOTHING, least)

    def design(self, batch: Batch) -> Float[np.ndarray, "R d"]:
        """How the rows' latent parameters, less their offsets, follow from the states."""
        law, latents = self.law, sum(self.model.draws)
        latent = self.states.readouts(batch.x[:, 0], law.latent, latents)
        mixed = Mixed.of(self.model, batch)
        found = np.zeros((batch.flat_size, self.states.size))
        for run, weights in zip(batch.runs, mixed.weights, strict=True):
            found[run.flat] = (weights @ latent[run.rows]).reshape(-1, self.states.size)
        columns = mixed.basis.shape[1]
        found[:, self.states.size - columns :] += mixed.basis
        return found

    def asking(self, time: Float[np.ndarray, " n"]) -> Rows:
        """Rows that ask for the states at some times."""
        n, outputs = len(time), len(self.loadings)
        mix = np.zeros((n, outputs)) if self.mixes else None
        basis = np.zeros((n, self.model.basis_size))
        return Rows(time, np.full(n, np.nan), np.ones(n), np.zeros(n, int), basis, mix)


class Posterior(NamedTuple):
    """What a window's rows and all around it say, as `e_step` asks."""

    log_evidence: float


@dataclasses.dataclass(frozen=True, eq=False)
class Window:
    """Rows of a batch, whose order in time is that in which they came.

    Attributes:
        world: The model and its states.
        batch: The rows.
        around: What is known of rows before and after them.
    """

    world: World
    batch: Batch
    around: Around = ALONE

    @property
    def model(self) -> MultiTaskGP:
        """The hyperparameters, plain."""
        return self.world.model

    @functools.cached_property
    def features(self) -> Features:
        """The latent parameters before any data: states leave nothing of them open."""
        return without_design(self.model, self.batch)

    @functools.cached_property
    def basis(self) -> Float[np.ndarray, "N B"]:
        """The mean functions at the rows, in the order of time."""
        return self.batch.as_they_came(self.model.basis(self.batch))

    @functools.cached_property
    def time(self) -> Float[np.ndarray, " N"]:
        """When the rows are, in order."""
        return self.batch.as_they_came(self.batch.x[:, 0])

    @functools.cached_property
    def output(self) -> Int[np.ndarray, " N"]:
        """The first latent parameter of each row, in the order of time."""
        return self.batch.as_they_came(self.model.outputs.first[self.batch.channel])

    def conditioned(self, rows: RowSites) -> tuple[Posterior, Marginals]:
        """q given all around and these sites, and what it says at the rows."""
        scalars = self.scalars(rows)
        beside = 0.5 * float(
            np.sum(np.log(2 * np.pi * scalars.noise) + scalars.value**2 / scalars.noise)
        )
        if self.world.mixes:
            value, mean, covariance = self._in_directions(scalars)
        else:
            value, means, variances = self.world.states.smoothed(scalars, self.around)
            mean, covariance = (
                means[self.batch.order],
                (variances[self.batch.order][:, None, None],),
            )
        at_rows = Marginals(self.features.offset + mean, covariance, mean, covariance)
        return Posterior(value + beside), at_rows

    def resolved(self, rows: RowSites) -> RowSites:
        """The same: the core keeps roots of covariances."""
        return rows

    def scalars(self, rows: RowSites) -> Rows:
        """The sites as scalar rows, in the order of time."""
        return self._split(rows) if self.world.mixes else self._single(rows)

    def _single(self, rows: RowSites) -> Rows:
        precision = np.concatenate([np.zeros(0), *(own[:, 0, 0] for own in rows.precision)])
        precision, pull = map(self.batch.as_they_came, (precision, rows.linear))
        precision = np.maximum(precision, self.world.least[self.output])
        return Rows(self.time, pull / precision, 1 / precision, self.output, self.basis)

    def _split(self, rows: RowSites) -> Rows:
        """Each direction of each row."""
        order, first = self.batch.order, self.model.outputs.first[self.batch.channel]
        place, value, noise = [np.zeros(0, int)], [np.zeros(0)], [np.zeros(0)]
        mix = [np.zeros((0, len(self.world.loadings)))]
        for run, blocks in zip(self.batch.runs, rows.precision, strict=True):
            j, n = run.latents, len(blocks)
            outputs = first[run.rows][:, None] + np.arange(j)
            strengths, directions = np.linalg.eigh(blocks)
            least = np.min(self.world.least[outputs], axis=1, keepdims=True)
            strengths = np.maximum(strengths, least)
            pull = rows.linear[run.flat].reshape(n, 1, j) @ directions
            place.append(np.repeat(order[run.rows], j))
            value.append(np.ravel(pull[:, 0] / strengths))
            noise.append(np.ravel(1 / strengths))
            own = np.zeros((n, j, len(self.world.loadings)))
            np.put_along_axis(
                own,
                np.broadcast_to(outputs[:, None], (*own.shape[:2], j)),
                np.swapaxes(directions, 1, 2),
                axis=2,
            )
            mix.append(own.reshape(n * j, -1))
        places = np.concatenate(place)
        by_time = np.argsort(places, kind="stable")
        which = places[by_time]
        values, noises, mixes = (np.concatenate(own)[by_time] for own in (value, noise, mix))
        return Rows(self.time[which], values, noises, self.output[which], self.basis[which], mixes)

    def _in_directions(
        self, scalars: Rows
    ) -> tuple[float, Float[np.ndarray, " R"], tuple[Float[np.ndarray, "n J J"], ...]]:
        """The log evidence, and mean and covariance of the rows' latent parameters."""
        value = self.world.states.smoothed(scalars, self.around)[0]
        found = StatesAt(*map(self._sorted, self.states(scalars)))
        return value, *seen(self.batch, self.world.design(self.batch), found)

    def _sorted(self, values: Float[np.ndarray, "N ..."]) -> Float[np.ndarray, "N ..."]:
        return values[self.batch.order]

    def states(self, scalars: Rows, time: Float[np.ndarray, " m"] | None = None) -> StatesAt:
        """The states at the rows or at other times in order, given scalar rows and all around."""
        time = self.time if time is None else time
        size = self.world.states.size
        step = max(_TOGETHER // size**2, 1)
        found = [
            self.world.states.states(
                between(scalars, self.world.asking(time[at : at + step])), self.around
            )
            for at in range(0, len(time), step)
        ]
        if len(found) == 1:
            return found[0]
        none = np.zeros((0, size)), np.zeros((0, size, size))
        return StatesAt(*(np.concatenate(own) for own in zip(none, *found, strict=True)))


def between(rows: Rows, asking: Rows) -> Rows:
    """Rows, and others that only ask, in the order of time; at one time those that ask go last."""
    whole = joined([rows, asking])
    return whole.take(np.argsort(whole.time, kind="stable"))


def seen(
    batch: Batch, design: Float[np.ndarray, "R d"], at: StatesAt
) -> tuple[Float[np.ndarray, " R"], tuple[Float[np.ndarray, "n J J"], ...]]:
    """Mean and covariance of the latent parameters of rows, from the states at each row."""
    mean, covariance = np.empty(batch.flat_size), []
    for run in batch.runs:
        own = design[run.flat].reshape(-1, run.latents, design.shape[1])
        mean[run.flat] = np.ravel(own @ at.mean[run.rows, :, None])
        spread = own @ at.covariance[run.rows] @ np.swapaxes(own, 1, 2)
        diagonal = np.arange(run.latents)
        spread[:, diagonal, diagonal] = np.maximum(
            spread[:, diagonal, diagonal], 0.0
        )  # of rounding
        covariance.append(spread)
    return mean, tuple(covariance)


def scalars(world: World, rows: Kept) -> Rows:
    """Rows as the core has them, by their sites."""
    batch = rows.batch(world.model)
    window = Window(world, batch)
    return window.scalars(exact_sites(window, rows.sites(batch)))
