"""State: what is kept of the past, and what a step reports."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference import noise
from streamgp.inference.memory import Memory
from streamgp.inference.posterior import Posterior, condition
from streamgp.inference.prior import Points, Prior
from streamgp.inference.sites import Site
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, unwrap
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """All that is kept of the past. No data, and nothing that can be derived.

    Attributes:
        model: The hyperparameters, still wrapped: constrained, with priors.
        points: The inducing points of each latent function.
        site: What data said, whitened by the prior under `model` at `points`.
        memory: How past data depend on the hyperparameters.
        count: The observations it stands for, faded ones in part.
        energy: Their squares about the offset; for the noise of a lone channel.
    """

    model: MultiTaskGP
    points: Points
    site: Site
    memory: Memory
    count: float
    energy: float

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
    def posterior(self) -> Posterior:
        """q(v)."""
        return condition(self.site)

    @functools.cached_property
    def noise_is_exact(self) -> bool:
        """Whether the noise is all that can be learned of the only channel, exactly (`noise`)."""
        return noise.is_exact(self.model)

    def replace(self, **changes: Any) -> "State":
        """A copy with some fields changed, by name."""
        return dataclasses.replace(self, **changes)

    def is_finite(self, *, with_model: bool = True) -> bool:
        """Whether there is no NaN and no infinity in it; the model apart if it is known to be."""
        arrays = [
            self.memory.gradient, self.memory.precision,
            *self.site.linear, *self.site.precision, *self.points,
        ]  # fmt: skip
        if with_model:
            arrays.append(free_vector(self.model))
        numbers = np.isfinite([self.count, self.energy]).all()
        return bool(numbers and all(np.isfinite(np.sum(array)) for array in arrays))

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the fields only."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


class Info(NamedTuple):
    """What happened in a step.

    Attributes:
        bound: L_C of the batch: the first batch's is the ordinary evidence lower bound.
        log_predictive: Of each row, before learning from it.
        e_rounds: How many rounds the E steps took.
        m_evaluations: How often the M steps evaluated the bound.
        finite: Whether the new state is.
    """

    bound: float
    log_predictive: Float[np.ndarray, " N"]
    e_rounds: int
    m_evaluations: int
    finite: bool
