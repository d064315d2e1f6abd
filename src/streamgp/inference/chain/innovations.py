"""The evidence of data on a chain, from what each interval says that those before it did not."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.elements import (
    Backward,
    Columns,
    Forward,
    Gains,
    Matrices,
    Moves,
    PairSites,
)
from streamgp.numerics.batched import cholesky, eigen, identity_plus, solve, turned
from streamgp.numerics.linalg import symmetric

_ROUNDING = 1e-14  # relative: eigenvalues below it are none


def before_pairs(before: Forward, moves: Moves) -> Forward:
    """Both ends (a, c) of intervals, from what is known before each of them."""
    (a, q), size = moves, moves.transition.shape[-1]
    onward = a @ before.spread
    spread = np.empty((len(a), 2 * size, 2 * size))
    spread[:, :size, :size] = before.spread
    spread[:, size:, :size], spread[:, :size, size:] = onward, turned(onward)
    spread[:, size:, size:] = onward @ turned(a) + q
    return Forward(np.concatenate([before.mean, a @ before.mean], axis=1), spread)


def gained(before: Forward, moves: Moves, sites: PairSites) -> Gains:
    """What the data of consecutive intervals say of g, from what is known before each of them."""
    seen = _Seen.of(Backward(sites.linear, sites.precision))
    own = np.sum(sites.gram, axis=0) + _summed(seen.values, seen.values)
    return Gains(symmetric(own), 0.0) + _innovations(before_pairs(before, moves), seen)


def met(before: Forward, after: Backward) -> Gains:
    """What is said of g where what is known from both sides meets, in one state.

    What does not depend on `before` is left out.
    """
    return _innovations(before, _Seen.of(after))


class _Seen(NamedTuple):
    """Sites exp((η·g)ᵀx − ½xᵀJx) as observations of unit noise: exp(½|v·g|² − ½|w·x − v·g|²).

    They are the eigenvectors of J. Innovations of these are computed without taking differences of
    large numbers, as there would be in what is left once x is integrated out.
    """

    values: Columns  # v
    design: Matrices  # w

    @classmethod
    def of(cls, said: Backward) -> "_Seen":
        strength, vectors = eigen(said.precision)
        least = _ROUNDING * strength[:, -1:]
        root = np.sqrt(np.where(strength > least, strength, np.inf))
        rows = turned(vectors)
        values = (rows @ said.pull) / root[:, :, None]
        root = np.where(np.isfinite(root), root, 0.0)
        return cls(values, root[:, :, None] * rows)


def _innovations(before: Forward, seen: _Seen) -> Gains:
    """−½|c·g|² in the metric of I + wPwᵀ, c = v − w·m, and its normaliser; summed."""
    rest = seen.values - seen.design @ before.mean
    total = seen.design @ before.spread @ turned(seen.design)
    chol = cholesky(identity_plus(symmetric(total)))
    half = solve(chol, rest)
    log_det = np.sum(np.log(np.diagonal(chol, axis1=1, axis2=2)))
    return Gains(symmetric(-_summed(half, half)), -float(log_det))


def _summed(left: Columns, right: Columns) -> Float[np.ndarray, "k k"]:
    """Σ_n leftᵀ·right."""
    columns = left.shape[-1]
    return left.reshape(-1, columns).T @ right.reshape(-1, columns)
