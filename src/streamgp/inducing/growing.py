"""The paper's schedules: a new layout at every update, by a rule of the update's number."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float

from streamgp.inducing.strategy import AbstractStrategy, View
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class Growing(AbstractStrategy):
    """A number of points that follows a rule, laid anew over the explored domain at every update.

    `Growing(lambda t: 3 * t)` is the paper's streaming experiment.

    Args:
        rule: From the number of the update, 1, 2, …, to a number of points.
        layout: "grid" spaces `rule(t)` points evenly along each input, so that P inputs have
            rule(t)^P points. "random" draws `rule(t)` points uniformly.
        seed: Of the random layout.
    """

    rule: Callable[[int], int]
    layout: Literal["grid", "random"] = "grid"
    seed: int = 0

    def __call__(self, view: View) -> Float[np.ndarray, "M P"]:
        low, high = view.explored()
        count = int(self.rule(view.update))
        if self.layout == "random":
            generator = np.random.default_rng([self.seed, view.update])
            return generator.uniform(low, high, (count, len(low)))
        sides = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
        return np.stack([side.ravel() for side in np.meshgrid(*sides, indexing="ij")], axis=-1)
