"""Points where the model could not otherwise know: greedy conditional variance."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.strategy import AbstractStrategy, View
from streamgp.inference.prior import Prior
from streamgp.inference.state import State
from streamgp.kernels import Kernel
from streamgp.numerics.linalg import NUGGET, solve_lower
from streamgp.registry import storable

_LOSS = 0.01  # nats that a row may lose to the variance its inducing points leave open
_WORTH = 4.0  # how much more a new point must explain than the one that goes for it
_NEW_GROUND = 0.2  # an open share of prior variance that always makes a point
_FINEST = 1e-8  # share of prior variance; beyond it points tell each other apart by rounding only


@storable
@dataclasses.dataclass(frozen=True)
class Adaptive(AbstractStrategy):
    """Add points while the new inputs' prior variance is not explained by those there are.

    The worst input comes first. The number of points so follows the explored domain: old ground
    adds nothing. Each latent function has points of its own, as many as its lengthscale needs.

    Args:
        tolerance: An input becomes an inducing point while the points leave more than this part of
            its prior variance open (or less, where noise is so small that this would show).
        budget: The largest number of points of any latent function. Beyond it, the points whose
            loss changes the posterior least are dropped once the batch has been learned.
        drop: Another rule for that: a function (state, budget) → flags of the points to keep, one
            array per latent function.
    """

    tolerance: float = 1e-2
    budget: int = 256
    drop: Callable[[State, int], Sequence[Bool[np.ndarray, " _"]]] | None = None

    def __post_init__(self) -> None:
        if not (0 < self.tolerance < 1 and self.budget >= 1):
            raise ConfigurationError(
                problem(
                    "a tolerance between 0 and 1 and a budget of at least 1",
                    f"tolerance={self.tolerance}, budget={self.budget}",
                    "The defaults, 1e-2 and 256, suit most streams.",
                )
            )

    @property
    def follows_kernels(self) -> bool:
        return True  # a learned kernel may want more points for the same inputs

    @property
    def can_settle(self) -> bool:
        return True

    def kept(self, state: State, budget: int) -> Sequence[Bool[np.ndarray, " _"]] | None:
        return None if self.drop is None else self.drop(state, budget)

    @property
    def _nearly(self) -> int:
        """So many points that there is no room for those of little use."""
        return self.budget - self.budget // 8

    def __call__(self, view: View) -> list[Float[np.ndarray, "_ P"]]:
        sets = []
        for q, points in enumerate(view.points):
            chosen = self._chosen(view, q)
            if not len(points) and not len(chosen):  # no variance anywhere, as of a line's centre
                chosen = np.zeros(1, int)
            sets.append(np.concatenate([points, view.x[chosen]]))
        return sets

    def _chosen(self, view: View, q: int) -> Int[np.ndarray, " R"]:
        """Which inputs become points of latent function q."""
        # Beyond the budget there is room for some, until the batch has been learned.
        count = len(view.points[q])
        room = max(self.budget - count, (self.budget + 1) // 2)
        values, left, prior = _explained(view, q)
        allowed = self._allowed(view, q, prior)
        if not np.any(left > allowed):
            return np.zeros(0, int)
        kernel, x = view.kernels[q], view.x - view.prior.origin
        return greedy(kernel, x, prior, values, left, allowed, limit=room)

    def settled(self, view: View) -> Bool[np.ndarray, " N"]:
        """Which inputs would not become inducing points, were each to come alone."""
        settled = np.ones(len(view.x), bool)
        for q in range(len(view.points)):
            _, left, prior = _explained(view, q)
            settled &= left <= self._allowed(view, q, prior)
        return settled

    def spare(self, view: View) -> Float[np.ndarray, " Q"]:
        """The open part of prior variance below which a point adds nothing to the others."""
        spares = []
        for kernel, precision in zip(view.kernels, view.precision, strict=True):
            prior = kernel.diagonal(view.x - view.prior.origin)
            allowed = _allowed(prior, precision, self.tolerance)
            spares.append(0.5 * np.min(allowed / (prior + 1e-300)))
        return np.asarray(spares)

    def _allowed(
        self, view: View, q: int, prior: Float[np.ndarray, " N"]
    ) -> Float[np.ndarray, " N"]:
        full = len(view.points[q]) >= self._nearly
        floor = _least_open(view.prior, q) if full else 0.0
        return _allowed(prior, view.precision[q], self.tolerance, floor)


def greedy(
    kernel: Kernel,
    x: Float[np.ndarray, "N P"],
    prior: Float[np.ndarray, " N"],
    explained: Float[np.ndarray, "M N"],
    left: Float[np.ndarray, " N"],
    allowed: Float[np.ndarray, " N"],
    *,
    limit: int,
) -> Int[np.ndarray, " R"]:
    """Indices of inputs to add, by pivoted Cholesky on top of the points that there are.

    Args:
        kernel: Of the latent function.
        x: The inputs, as the kernel sees them.
        prior: The prior variance at each.
        explained: L⁻¹K(Z, x) of the points that there are.
        left: The variance that they leave open.
        allowed: The variance that may stay open.
        limit: How many inputs may be added.
    """
    known = len(explained)
    rows = np.concatenate([explained, np.empty((min(limit, 16), len(x)))])
    left = left.copy()
    chosen: list[int] = []
    while len(chosen) < limit and np.any(left > allowed):
        best = int(np.argmax(left / allowed))
        pivot = left[best] + NUGGET * prior[best]
        used = known + len(chosen)
        if used == len(rows):
            rows = np.concatenate([rows, np.empty((used - known, len(x)))])
        covariance = kernel.matrix(x[best : best + 1], x)[0] - rows[:used, best] @ rows[:used]
        rows[used] = covariance / np.sqrt(pivot)
        left -= rows[used] ** 2
        left[best] = 0.0
        chosen.append(best)
    return np.asarray(chosen, int)


def _explained(
    view: View, q: int
) -> tuple[Float[np.ndarray, "M N"], Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Rows whose squares the points explain of each input's variance, what is left, and all."""
    kernel, x = view.kernels[q], view.x - view.prior.origin
    prior = kernel.diagonal(x)
    cross = kernel.matrix(view.points[q] - view.prior.origin, x)
    values = solve_lower(view.prior.chols[q], cross)
    return values, prior - np.einsum("mn,mn->n", values, values), prior


def _least_open(prior: Prior, q: int) -> float:
    """The least part of its prior variance that a point is needed for, where there is no room.

    A point that explains less than that is not worth the one that would have to go for it.
    """
    chol = prior.chols[q]
    precision = np.sum(solve_lower(chol, np.eye(len(chol))) ** 2, axis=0)  # diagonal of K⁻¹
    least = np.min(1 / (precision * np.diagonal(prior.grams[q])))
    return min(_WORTH * float(least), _NEW_GROUND)


def _allowed(
    prior: Float[np.ndarray, " N"],
    precision: Float[np.ndarray, " N"],
    tolerance: float,
    floor: float = 0.0,
) -> Float[np.ndarray, " N"]:
    """The variance that may stay open at each input."""
    unseen = 2 * _LOSS / np.maximum(precision, 1e-300)
    least = max(floor, _FINEST)
    return np.maximum(np.minimum(tolerance * prior, unseen), least * prior) + 1e-300
