"""State: what is kept of the past, and what a step reports."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.cells import Cells
from streamgp.inference.memory import Memory
from streamgp.inference.past import Past
from streamgp.inference.posterior import Posterior, condition
from streamgp.inference.prior import Points, Prior
from streamgp.inference.reading import Reading
from streamgp.inference.scatter import energy_left
from streamgp.inference.scoring import Scored
from streamgp.inference.seen_cells import SeenCells
from streamgp.inference.sites import Site
from streamgp.inference.weight_uncertainty import open_weights
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_size, free_vector, unwrap
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """All that is kept of the past, and nothing that can be derived.

    Attributes:
        model: The hyperparameters, still wrapped: constrained, with priors.
        points: The inducing points of each latent function.
        past: What data said, by channel and unmixed, whitened by the prior under `model` at
            `points`.
        memory: How past data depend on the hyperparameters in ways that `past` cannot tell.
        heard: The observations of each channel that it stands for, faded ones in part.
        cells: Past rows as local averages; see `VEM`. None where nothing of the kind is kept.
    """

    model: MultiTaskGP
    points: Points
    past: Past
    memory: Memory
    heard: Float[np.ndarray, " D"]
    cells: Cells | None = None

    # What follows from the fields is computed once, when it is first asked for.

    @functools.cached_property
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""
        return unwrap(self.model)

    @functools.cached_property
    def prior(self) -> Prior:
        """The prior that the site is whitened by."""
        return Prior.of(self.plain, self.points)

    @functools.cached_property
    def reading(self) -> Reading:
        """The weights and noises under which the past is read."""
        return Reading.of(self.plain)

    @functools.cached_property
    def site(self) -> Site:
        """What data said of v under the present weights and noises."""
        return self.reading.site(self.past)

    @functools.cached_property
    def posterior(self) -> Posterior:
        """q(v)."""
        return condition(self.site)

    @functools.cached_property
    def open_weights(self) -> tuple[Float[np.ndarray, "_J Q _J Q"], ...]:
        """What data leave open about the loadings of each channel."""
        stiffness = self.reading.stiffness(self.past, self.posterior.second)
        return open_weights(self.model, stiffness)

    @functools.cached_property
    def open_variance(self) -> Float[np.ndarray, " Q"]:
        """The part of each latent function's variance at past rows that its points leave open."""
        return self.reading.open_variance(self.past, self.site)

    @functools.cached_property
    def energy_left(self) -> Float[np.ndarray, " D"]:
        """What of each channel's energy q does not explain within its cells."""
        assert self.cells is not None
        return energy_left(self.plain, self.cells, self.prior, self.posterior)

    @property
    def mean_weights(self) -> Float[np.ndarray, "O B"]:
        """E_q[β]: the expected weights of each latent parameter's mean functions."""
        spreads = self.reading.spreads
        every = self.posterior.mean
        return spreads * every[len(every) - spreads.size :].reshape(spreads.shape)

    @property
    def kept_rows(self) -> int:
        """None: the past is kept as sums at inducing points."""
        return 0

    @property
    def explored(self) -> Float[np.ndarray, "_ P"]:
        """Where data were, as the inducing points tell it."""
        return np.concatenate(self.points)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many inducing points each latent function has."""
        return tuple(len(points) for points in self.points)

    @property
    def count(self) -> float:
        """The observations that the state stands for, faded ones in part."""
        return float(np.sum(self.heard))

    @property
    def has_cells(self) -> bool:
        """Whether past rows can be seen again through other features."""
        return self.cells is not None and self.cells.size > 0

    def seen_again(self, points: Points | None = None) -> "State":
        """The same with its past seen anew, through these points if they are others."""
        assert self.cells is not None
        prior = self.prior if points is None else Prior.of(self.plain, points)
        seen = SeenCells(self.cells, self.cells.batch(self.plain), prior, self.energy_left)
        again = self.replace(points=prior.points, past=seen.past(self.plain))
        vars(again).update(plain=self.plain, prior=prior, reading=self.reading)
        vars(again).update(energy_left=self.energy_left)  # what its past was made with
        return again

    def with_channel(self, model: MultiTaskGP, latents: int) -> "State":
        """The same with a further channel, the last of that model, of which nothing is known."""
        return self.replace(
            model=model,
            past=self.past.with_channel(latents, model.basis_size),
            memory=self.memory.widened(free_size(model)),
            heard=np.append(self.heard, 0.0),
            cells=self.cells and self.cells.with_channel(latents, model.basis_size),
        )

    def replace(self, **changes: Any) -> "State":
        """A copy with some fields changed, by name."""
        return dataclasses.replace(self, **changes)

    def is_finite(self, before: "State | None" = None) -> bool:
        """Whether all numbers are finite, a model that it shares with another state apart."""
        arrays = [
            self.memory.gradient, self.memory.precision, self.heard,
            *self.past.arrays(), *self.points,
        ]  # fmt: skip
        if self.cells is not None:
            arrays += self.cells.arrays()
        if before is None or self.model is not before.model:
            arrays.append(free_vector(self.model))
        return math.isfinite(sum(float(array.sum()) for array in arrays))

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the fields only."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


class Info(NamedTuple):
    """What happened in a step.

    Attributes:
        bound: L_C of the batch: the first batch's is the ordinary evidence lower bound.
        scored: Each row, before learning from it.
        e_rounds: How many rounds the E steps took.
        m_evaluations: How often the M steps evaluated the bound.
        finite: Whether the new state is.
    """

    bound: float
    scored: Scored
    e_rounds: int
    m_evaluations: int
    finite: bool

    @property
    def log_predictive(self) -> Float[np.ndarray, " N"]:
        """Of each row, before learning from it."""
        return self.scored.log_predictive
