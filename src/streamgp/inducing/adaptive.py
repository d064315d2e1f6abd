"""Points where the model could not otherwise know: greedy conditional variance."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from tinygp.kernels import Kernel

from streamgp.data import inducing_bucket, row_bucket
from streamgp.errors import ConfigurationError, problem
from streamgp.inducing.base import View
from streamgp.linalg import NUGGET, cholesky, gram, solve_lower

_LOSS = 0.05  # nats that a row may lose to the variance its inducing points leave open
_FINEST = 1e-8  # share of prior variance; beyond it points tell each other apart by rounding only


@dataclasses.dataclass(frozen=True)
class Adaptive:
    """Add points while the new inputs' prior variance is not explained by those there are.

    An input becomes an inducing point while the share of its prior variance that the points
    leave open exceeds `tolerance` (or less, where noise is so small that this would show), the
    worst input first. M so follows the explored domain: old ground adds nothing. Each latent
    function has points of its own, as many as its lengthscale needs, at most `budget`. When the
    budget binds, the old points and the new inputs compete for it by the same rule.
    """

    tolerance: float = 1e-3
    budget: int = 256

    follows_kernels = True  # a learned kernel may want more points for the same inputs

    def __post_init__(self) -> None:
        if not (0 < self.tolerance < 1 and self.budget >= 1):
            raise ConfigurationError(
                problem(
                    "a tolerance between 0 and 1 and a budget of at least 1",
                    f"tolerance={self.tolerance}, budget={self.budget}",
                    "The defaults, 1e-3 and 256, suit most streams.",
                )
            )

    def __call__(self, view: View) -> list[Float[np.ndarray, "_ P"]]:
        return [
            self._for_one(points, view.x, kernel, precision)
            for points, kernel, precision in zip(
                view.points, view.kernels, view.precision, strict=True
            )
        ]

    def _for_one(
        self,
        points: Float[np.ndarray, "M P"],
        x: Float[np.ndarray, "N P"],
        kernel: Kernel,
        precision: Float[np.ndarray, " N"],
    ) -> Float[np.ndarray, "R P"]:
        room = self.budget - len(points) + 1  # one more than fits tells that the budget binds
        open_share = self._open_share(kernel, x, precision)
        chosen = greedy(kernel, points, x, open_share=open_share, limit=room)
        if len(points) + len(chosen) <= self.budget:
            return np.concatenate([points, x[chosen]])
        everything = np.concatenate([points, x])
        none = np.zeros((0, x.shape[1]))
        evenly = np.full(len(everything), self.tolerance)
        best = greedy(kernel, none, everything, open_share=evenly, limit=self.budget)
        return everything[np.sort(best)]

    def _open_share(
        self, kernel: Kernel, x: Float[np.ndarray, "N P"], precision: Float[np.ndarray, " N"]
    ) -> Float[np.ndarray, " N"]:
        """The share of prior variance that may stay open at each input."""
        cost = 0.5 * precision * np.asarray(_prior(kernel, jnp.asarray(x)))
        return np.maximum(np.minimum(self.tolerance, _LOSS / np.maximum(cost, 1e-300)), _FINEST)


def greedy(
    kernel: Kernel,
    points: Float[np.ndarray, "M P"],
    candidates: Float[np.ndarray, "N P"],
    *,
    open_share: Float[np.ndarray, " N"],
    limit: int,
) -> Int[np.ndarray, " R"]:
    """Indices of candidates to add, by pivoted Cholesky on top of `points`, at most `limit`.

    Until no candidate has more of its prior variance open than its `open_share` of it.
    """
    slots, rows = inducing_bucket(len(points)), row_bucket(len(candidates))
    z = np.pad(points, [(0, slots - len(points)), (0, 0)])
    padded = np.minimum(np.arange(rows), len(candidates) - 1)
    order, count = _pivots(
        kernel,
        jnp.asarray(z),
        jnp.arange(slots) < len(points),
        jnp.asarray(candidates[padded]),
        jnp.arange(rows) < len(candidates),
        jnp.asarray(open_share[padded]),
        jnp.asarray(limit),
        inducing_bucket(min(limit, rows)),
    )
    return np.asarray(order)[: int(count)]


@eqx.filter_jit
def _prior(kernel: Kernel, x: Float[Array, "N P"]) -> Float[Array, " N"]:
    return kernel(x)


@eqx.filter_jit
def _pivots(
    kernel: Kernel,
    z: Float[Array, "M P"],
    mask: Bool[Array, " M"],
    x: Float[Array, "N P"],
    valid: Bool[Array, " N"],
    open_share: Float[Array, " N"],
    limit: Int[Array, ""],
    capacity: int,
) -> tuple[Int[Array, " R"], Int[Array, ""]]:
    prior = kernel(x)
    cross = jnp.where(mask[:, None], kernel(z, x), 0.0)
    explained = solve_lower(cholesky(gram(kernel, z, mask)), cross)
    rows = jnp.concatenate([explained, jnp.zeros((capacity, len(x)))])
    residual = jnp.where(valid, prior - jnp.sum(explained**2, axis=0), 0.0)

    allowed = open_share * jnp.maximum(prior, 1e-300)

    def excess(residual: Float[Array, " N"]) -> Float[Array, " N"]:
        return residual / allowed

    def wanted(loop: tuple) -> Bool[Array, ""]:
        _, residual, _, count = loop
        return (count < jnp.minimum(limit, capacity)) & (jnp.max(excess(residual)) > 1.0)

    def add(loop: tuple) -> tuple:
        rows, residual, order, count = loop
        best = jnp.argmax(excess(residual))
        pivot = residual[best] + NUGGET * prior[best]
        covariance = jax.vmap(kernel.evaluate, (None, 0))(x[best], x) - rows[:, best] @ rows
        row = covariance / jnp.sqrt(pivot)
        left = jnp.where(valid, residual - row**2, 0.0).at[best].set(0.0)
        return rows.at[len(z) + count].set(row), left, order.at[count].set(best), count + 1

    begin = (rows, residual, jnp.zeros(capacity, int), jnp.asarray(0))
    _, _, order, count = jax.lax.while_loop(wanted, add, begin)
    return order, count
