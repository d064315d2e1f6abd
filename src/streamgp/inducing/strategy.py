"""What a placement strategy sees, what it answers, and what else it may say."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.errors import ConfigurationError, problem
from streamgp.inference.sparse.prior import Prior
from streamgp.inference.sparse.state import State
from streamgp.kernels import Kernel


class View(NamedTuple):
    """What a strategy places points for. Everything is in the user's units.

    Attributes:
        points: The inducing points so far, one array per latent function.
        x: The inputs that just came.
        prior: The kernels as they are now and the old points, factorised: `prior.project(x).open`
            is the variance that the old points leave open at inputs.
        update: The number of this update, counted from one.
        precision: How precisely each row observes each latent function. Leaving variance open at
            row n costs half the product of that variance and `precision[q][n]`, in nats.
        open_variance: The part of each latent function's variance at past rows that the old points
            leave open.
    """

    points: tuple[Float[np.ndarray, "_ P"], ...]
    x: Float[np.ndarray, "N P"]
    prior: Prior
    update: int
    precision: Float[np.ndarray, "Q N"]
    open_variance: Float[np.ndarray, " Q"]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel of each latent function, on inputs less `prior.origin`."""
        return self.prior.kernels

    def explored(self) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """The corners of the box that the points and the new inputs span."""
        everything = np.concatenate([self.x, *self.points])
        return everything.min(axis=0), everything.max(axis=0)


# A strategy answers with one set of points for all latent functions, or a sequence of one set each.
Points = Float[np.ndarray, "M P"] | Sequence[Float[np.ndarray, "_ P"]]


class AbstractStrategy(ABC):
    """Where inducing points go. A strategy of your own is a subclass with `__call__`.

    Every other member has a default, which suits a strategy that lays all points anew and has no
    limit to their number. Strategies are settings: they must not change once they are in use.
    """

    @abstractmethod
    def __call__(self, view: View) -> Points:
        """The inducing points from now on, for the rows that just came.

        Args:
            view: The points so far, the new inputs, the kernels.

        Returns:
            An array (M, P) for all latent functions, or a sequence of one array for each.
        """

    @property
    def budget(self) -> int | None:
        """The largest number of points of any latent function; None for no limit.

        A strategy may answer with more. The points whose loss costs the bound least are
        dropped once the batch has been learned.
        """
        return None

    @property
    def follows_kernels(self) -> bool:
        """Whether other kernels would mean other points for the same rows.

        If so, an update asks again after it has learned the kernels.
        """
        return False

    @property
    def refinement(self) -> int:
        """How many evaluations of the bound may be spent on moving new points by gradient."""
        return 0

    @property
    def can_settle(self) -> bool:
        """Whether `settled` knows more than its default does."""
        return False

    def settled(self, view: View) -> Bool[np.ndarray, " N"]:
        """Which rows, were each to come alone, would change no point.

        Such rows need no placement, which makes streams of single samples fast. By default the
        strategy cannot tell, and no row is settled.
        """
        return np.zeros(len(view.x), bool)

    def spare(self, view: View) -> Float[np.ndarray, " Q"] | float:
        """The open part of a point's prior variance below which the other points make it spare.

        Spare points go when points are dropped, even below the budget.
        """
        return 0.0

    def kept(self, state: State, budget: int) -> Sequence[Bool[np.ndarray, " _"]] | None:
        """Which points to keep so that no latent function has more of them than `budget`.

        Args:
            state: `state.points` has the points of each latent function.
            budget: How many may stay.

        Returns:
            One array of flags per latent function. None, the default, keeps the points whose loss
            would cost the bound most.
        """
        return None


@dataclasses.dataclass(frozen=True)
class FunctionStrategy(AbstractStrategy):
    """A plain function of a `View` as a strategy."""

    function: Callable[[View], Points]

    def __call__(self, view: View) -> Points:
        return self.function(view)


def as_strategy(given: Any) -> AbstractStrategy:
    """A strategy as it is, or a function made into one."""
    if isinstance(given, AbstractStrategy):
        return given
    if callable(given) and not isinstance(given, type):
        return FunctionStrategy(given)
    raise ConfigurationError(
        problem(
            "a placement strategy or a function of a `View`",
            repr(given),
            "Write `inducing=Adaptive()`, or derive a class from `AbstractStrategy`.",
        )
    )


def as_given(strategy: AbstractStrategy) -> Any:
    """The strategy, or the function that it was made of."""
    return strategy.function if isinstance(strategy, FunctionStrategy) else strategy


def place(strategy: AbstractStrategy, view: View) -> tuple[Float[np.ndarray, "_ P"], ...]:
    """The strategy's points, one set per latent function, each without duplicates, in its order."""
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
