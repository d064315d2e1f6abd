"""Points at inputs that other points explain least: pivots of a Cholesky factorisation."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.strategy import AbstractStrategy, View
from streamgp.inference.sparse.prior import Prior
from streamgp.kernels import Kernel
from streamgp.numerics.linalg import NUGGET, solve_lower
from streamgp.registry import storable

_LOSS = 0.01  # nats that a row may lose to the variance its inducing points leave open
_WORTH = 4.0  # how much more a new point must explain than the one that goes for it
_NEW_GROUND = 0.2  # an open share of prior variance that always makes a point
_FINEST = 1e-8  # share of prior variance; beyond it points tell each other apart by rounding only
_FINE = 1e-6  # the same, for points that use up room on known ground
_KNOWN = 2.0  # how much more may be open of rows on known ground than of past rows
_NOTHING_OPEN = 1e-4  # an open share of variance that is as good as none
_FINER = 16  # an update on known ground may use one part in so many of the budget
_FIRST = 8  # the same of a first batch, which may have half as many points again as it needs


@storable
@dataclasses.dataclass(frozen=True)
class Adaptive(AbstractStrategy):
    """Add inducing points where the present ones do not explain the new inputs' prior variance.

    The input that is explained least comes first. So the number of points grows with the region
    (the ground) that the stream covers, not with the number of rows. Each latent function has
    points of its own, as many as its lengthscale needs.

    If the budget has room, the first batch, and later batches on ground that is covered already,
    add further points, so that lengthscales can become shorter later.

    Args:
        tolerance: An input becomes an inducing point while the points leave more than this part of
            its prior variance open (or less, where noise is so small that this would show).
        budget: The largest number of points of any latent function. Beyond it, the points whose
            loss costs the bound least are dropped once the batch has been learned.
    """

    tolerance: float = 1e-2
    budget: int = 256

    def __post_init__(self) -> None:
        if not (0 < self.tolerance < 1 and self.budget >= 1):
            raise ConfigurationError(
                problem(
                    "a tolerance between 0 and 1, and a budget of at least 1",
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

    @property
    def _nearly(self) -> int:
        """The number of points from which on only clearly useful ones are added."""
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
        ground = Ground.of(view, q)
        chosen = ground.pivots(self._allowed(view, q, ground.prior), limit=room)
        limit = self._nearly if view.x.shape[1] > 1 else self.budget // 2
        if count:
            more, fine = max(self.budget // _FINER, 1) if ground.is_known else 0, _FINE
        else:  # what the first rows say is kept for lengthscales that later rows make shorter
            more, fine = min(self.budget // _FIRST, (len(chosen) + 1) // 2), _FINEST
        more = min(more, limit - count - len(chosen))
        if more > 0:
            chosen = ground.pivots(fine * ground.prior + 1e-300, limit=len(chosen) + more)
        return chosen

    def settled(self, view: View) -> Bool[np.ndarray, " N"]:
        """Which inputs would not become inducing points, were each to come alone."""
        settled = np.ones(len(view.x), bool)
        for q in range(len(view.points)):
            ground = Ground.of(view, q)
            settled &= ground.left <= self._allowed(view, q, ground.prior)
        return settled

    def spare(self, view: View) -> Float[np.ndarray, " Q"]:
        """The open part of prior variance below which a point adds nothing to the others.

        Points may be finer than they need to be. Over one input, where a stream mostly goes on to
        new ground, that ends when half of the budget is in use.
        """
        spares = np.full(len(view.points), _FINEST)
        if view.x.shape[1] > 1:
            return spares
        for q, (kernel, precision) in enumerate(zip(view.kernels, view.precision, strict=True)):
            if len(view.points[q]) > self.budget // 2:
                prior = kernel.diagonal(view.x - view.prior.origin)
                allowed = _allowed(prior, precision, self.tolerance)
                spares[q] = 0.5 * np.min(allowed / (prior + 1e-300))
        return spares

    def _allowed(
        self, view: View, q: int, prior: Float[np.ndarray, " N"]
    ) -> Float[np.ndarray, " N"]:
        full = len(view.points[q]) >= self._nearly
        floor = _least_open(view.prior, q) if full else 0.0
        return _allowed(prior, view.precision[q], self.tolerance, floor)


class Ground(NamedTuple):
    """New inputs, and what the old points of a latent function say about them.

    Attributes:
        kernel: Of the latent function.
        x: The inputs, as the kernel sees them.
        prior: The prior variance at each.
        explained: L⁻¹K(Z, x): its squares are what the points explain of the variance.
        left: What they leave open.
        precision: How precisely each input is observed.
        open_before: The part of the variance at past rows that the points leave open.
    """

    kernel: Kernel
    x: Float[np.ndarray, "N P"]
    prior: Float[np.ndarray, " N"]
    explained: Float[np.ndarray, "M N"]
    left: Float[np.ndarray, " N"]
    precision: Float[np.ndarray, " N"]
    open_before: float

    @classmethod
    def of(cls, view: View, q: int) -> "Ground":
        kernel, x = view.kernels[q], view.x - view.prior.origin
        prior = kernel.diagonal(x)
        values = solve_lower(
            view.prior.chols[q], kernel.matrix(view.points[q] - view.prior.origin, x)
        )
        left = prior - np.einsum("mn,mn->n", values, values)
        return cls(kernel, x, prior, values, left, view.precision[q], view.open_variance[q])

    @property
    def is_known(self) -> bool:
        """Whether the points explain these inputs about as well as those that came before."""
        if not len(self.explained):
            return False
        total = float(self.precision @ self.prior)
        left = float(self.precision @ np.maximum(self.left, 0.0))
        return total > 0 and left <= _KNOWN * max(self.open_before, _NOTHING_OPEN) * total

    def pivots(self, allowed: Float[np.ndarray, " N"], *, limit: int) -> Int[np.ndarray, " R"]:
        """Inputs to add, by pivoted Cholesky on top of the points that there are.

        Args:
            allowed: The variance that may stay open.
            limit: How many inputs may be added.
        """
        known, left = len(self.explained), self.left.copy()
        rows = np.concatenate([self.explained, np.empty((min(limit, 16), len(self.x)))])
        chosen: list[int] = []
        while len(chosen) < limit and np.any(left > allowed):
            best = int(np.argmax(left / allowed))
            pivot = left[best] + NUGGET * self.prior[best]
            used = known + len(chosen)
            if used == len(rows):
                rows = np.concatenate([rows, np.empty((used - known, len(self.x)))])
            covariance = self.kernel.matrix(self.x[best : best + 1], self.x)[0]
            rows[used] = (covariance - rows[:used, best] @ rows[:used]) / np.sqrt(pivot)
            left -= rows[used] ** 2
            left[best] = 0.0
            chosen.append(best)
        return np.asarray(chosen, int)


def _least_open(prior: Prior, q: int) -> float:
    """The least part of its prior variance that a point is needed for, where there is no room.

    A point that explains less than that is not worth the one that would have to go for it.
    """
    chol = prior.chols[q]
    precision = np.sum(solve_lower(chol, np.eye(len(chol))) ** 2, axis=0)  # diagonal of K⁻¹
    most = float(np.max(precision * np.diagonal(prior.grams[q])))
    return min(_WORTH / max(most, 1.0), _NEW_GROUND)  # it is less than 1 if no point has variance


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
