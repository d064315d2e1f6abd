"""Points where the model could not otherwise know: greedy conditional variance."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from tinygp.kernels import Kernel

from streamgp.data import inducing_bucket, row_bucket
from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.strategy import AbstractStrategy, View
from streamgp.numerics.compiling import compiled
from streamgp.numerics.linalg import NUGGET, cholesky, gram, solve_lower
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
        drop: Another rule for that: a function (state, budget) → which slots to keep.
    """

    tolerance: float = 1e-2
    budget: int = 256
    drop: Callable[[Any, int], Bool[np.ndarray, "Q M"]] | None = None

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

    def kept(self, state: Any, budget: int) -> Bool[np.ndarray, "Q M"] | None:
        return None if self.drop is None else self.drop(state, budget)

    @property
    def _nearly(self) -> int:
        """So many points that there is no room for those of little use."""
        return self.budget - self.budget // 8

    def __call__(self, view: View) -> list[Float[np.ndarray, "_ P"]]:
        sets = []
        for points, kernel, precision in zip(
            view.points, view.kernels, view.precision, strict=True
        ):
            # Beyond the budget there is room for some, until the batch has been learned.
            room = max(self.budget - len(points), (self.budget + 1) // 2)
            chosen = greedy(
                kernel, points, view.x, precision,
                tolerance=self.tolerance, limit=room, full=len(points) >= self._nearly,
            )  # fmt: skip
            if not len(points) and not len(chosen):  # no variance anywhere, as of a line's centre
                chosen = np.zeros(1, int)
            sets.append(np.concatenate([points, view.x[chosen]]))
        return sets

    def settled(
        self,
        kernels: Sequence[Kernel],
        points: Float[Array, "Q M P"],
        mask: Bool[Array, "Q M"],
        x: Float[Array, "N P"],
        precision: Float[Array, "Q N"],
    ) -> Bool[Array, " N"]:
        """Which inputs would not become inducing points, were each to come alone."""
        settled = jnp.ones(len(x), bool)
        for q, kernel in enumerate(kernels):
            chol = cholesky(gram(kernel, points[q], mask[q]))
            prior, explained = _explained(kernel, points[q], mask[q], chol, x)
            left = prior - jnp.sum(explained**2, axis=0)
            full = jnp.sum(mask[q]) >= self._nearly
            floor = _least_open(kernel, points[q], mask[q], chol, full)
            settled &= left <= _allowed(prior, precision[q], self.tolerance, floor)
        return settled

    def spare(
        self, kernel: Kernel, x: Float[Array, "N P"], precision: Float[Array, " N"]
    ) -> Float[Array, ""]:
        """The open part of prior variance below which a point adds nothing to the others."""
        prior = kernel(x)
        return 0.5 * jnp.min(_allowed(prior, precision, self.tolerance) / (prior + 1e-300))


def greedy(
    kernel: Kernel,
    points: Float[np.ndarray, "M P"],
    candidates: Float[np.ndarray, "N P"],
    precision: Float[np.ndarray, " N"],
    *,
    tolerance: float,
    limit: int,
    full: bool = False,
) -> Int[np.ndarray, " R"]:
    """Indices of candidates to add, by pivoted Cholesky on top of `points`, at most `limit`."""
    slots, rows = inducing_bucket(len(points)), row_bucket(len(candidates))
    padded = np.minimum(np.arange(rows), len(candidates) - 1)
    order, count = _pivots(
        kernel,
        np.pad(points, [(0, slots - len(points)), (0, 0)]),
        np.arange(slots) < len(points),
        candidates[padded],
        np.arange(rows) < len(candidates),
        precision[padded],
        np.asarray(tolerance),
        np.asarray(limit),
        np.asarray(full),
        inducing_bucket(min(limit, rows)),
    )
    return np.asarray(order)[: int(count)]


@compiled
def _pivots(
    kernel: Kernel,
    z: Float[Any, "M P"],
    mask: Bool[Any, " M"],
    x: Float[Any, "N P"],
    valid: Bool[Any, " N"],
    precision: Float[Any, " N"],
    tolerance: Float[Any, ""],
    limit: Int[Any, ""],
    full: Bool[Any, ""],
    capacity: int,
) -> tuple[Int[Array, " R"], Int[Array, ""]]:
    chol = cholesky(gram(kernel, z, mask))
    prior, explained = _explained(kernel, z, mask, chol, x)
    allowed = _allowed(prior, precision, tolerance, _least_open(kernel, z, mask, chol, full))
    rows = jnp.concatenate([explained, jnp.zeros((capacity, len(x)))])
    residual = jnp.where(valid, prior - jnp.sum(explained**2, axis=0), 0.0)

    def wanted(loop: tuple) -> Bool[Array, ""]:
        _, residual, _, count = loop
        return (count < jnp.minimum(limit, capacity)) & jnp.any(residual > allowed)

    def add(loop: tuple) -> tuple:
        rows, residual, order, count = loop
        best = jnp.argmax(residual / allowed)
        pivot = residual[best] + NUGGET * prior[best]
        covariance = jax.vmap(kernel.evaluate, (None, 0))(x[best], x) - rows[:, best] @ rows
        row = covariance / jnp.sqrt(pivot)
        left = jnp.where(valid, residual - row**2, 0.0).at[best].set(0.0)
        return rows.at[len(z) + count].set(row), left, order.at[count].set(best), count + 1

    begin = (rows, residual, jnp.zeros(capacity, int), jnp.asarray(0))
    _, _, order, count = jax.lax.while_loop(wanted, add, begin)
    return order, count


def _explained(
    kernel: Kernel,
    z: Float[Array, "M P"],
    mask: Bool[Array, " M"],
    chol: Float[Array, "M M"],
    x: Float[Array, "N P"],
) -> tuple[Float[Array, " N"], Float[Array, "M N"]]:
    """The prior variance at each input, and the rows whose squares the points explain of it."""
    cross = jnp.where(mask[:, None], kernel(z, x), 0.0)
    return kernel(x), solve_lower(chol, cross)


def _least_open(
    kernel: Kernel,
    z: Float[Array, "M P"],
    mask: Bool[Array, " M"],
    chol: Float[Array, "M M"],
    full: Bool[Array, ""],
) -> Float[Array, ""]:
    """The least share of its prior variance that a point is needed for, where there is no room.

    A point that explains less than that is not worth the one that would have to go for it.
    """

    def share() -> Float[Array, ""]:
        precision = jnp.sum(solve_lower(chol, jnp.eye(len(z))) ** 2, axis=0)  # diagonal of K⁻¹
        least = jnp.min(jnp.where(mask, 1 / (precision * kernel(z)), 1.0))
        return jnp.minimum(_WORTH * least, _NEW_GROUND)

    return jax.lax.cond(full, share, lambda: jnp.zeros(()))


def _allowed(
    prior: Float[Array, " N"],
    precision: Float[Array, " N"],
    tolerance: float | Float[Array, ""],
    floor: Float[Array, ""] | float = 0.0,
) -> Float[Array, " N"]:
    """The variance that may stay open at each input."""
    unseen = 2 * _LOSS / jnp.maximum(precision, 1e-300)
    share = jnp.maximum(floor, _FINEST)
    return jnp.maximum(jnp.minimum(tolerance * prior, unseen), share * prior) + 1e-300
