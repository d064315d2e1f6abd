"""What a placement strategy sees, and what it gives."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from tinygp.kernels import Kernel

from streamgp.errors import ConfigurationError, problem


class View(NamedTuple):
    """The inducing points so far, the inputs that just came, and the kernels as they are now.

    Everything is in the user's units. `points[q]`, `kernels[q]` and `precision[q]` belong to latent
    function q; `update` counts from one. `precision[q][n]` is how precisely row n observes the
    latent function: the cost in nats of leaving variance open there is half their product.
    """

    points: tuple[Float[np.ndarray, "_ P"], ...]
    x: Float[np.ndarray, "N P"]
    kernels: tuple[Kernel, ...]
    update: int
    precision: Float[np.ndarray, "Q N"]

    def explored(self) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """The corners of the box that the points and the new inputs span."""
        everything = np.concatenate([self.x, *self.points])
        return everything.min(axis=0), everything.max(axis=0)


Points = Float[np.ndarray, "M P"] | Sequence[Float[np.ndarray, "_ P"]]

# A strategy answers with one set of points for all latents, or a sequence of one set each.
Strategy = Callable[[View], Points]


def place(strategy: Strategy, view: View) -> tuple[Float[np.ndarray, "_ P"], ...]:
    """The strategy's points, one set a latent, each without duplicates and in its order."""
    answer = strategy(view)
    sets = list(answer) if isinstance(answer, list | tuple) else [answer] * len(view.kernels)
    arrays = [np.asarray(points, float) for points in sets]
    if not all(np.isfinite(points).all() for points in arrays):
        raise ConfigurationError(
            problem("finite inducing points", "NaN or infinite ones", "Check the strategy.")
        )
    width = view.x.shape[1]
    shapes = [points.shape for points in arrays]
    if len(sets) != len(view.kernels) or any(
        len(shape) != 2 or shape[0] == 0 or shape[1] != width for shape in shapes
    ):
        raise ConfigurationError(
            problem(
                f"inducing points with {width} column(s), one set or {len(view.kernels)}",
                f"shapes {shapes}",
                "Give points with as many columns as the inputs have.",
            )
        )
    return tuple(_distinct(points) for points in arrays)


def _distinct(points: Float[np.ndarray, "M P"]) -> Float[np.ndarray, "R P"]:
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]
