"""The evidence of data on a chain, from what each interval says that those before it did not."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.elements import (
    Backward,
    Columns,
    Forward,
    Gains,
    Moves,
    PairSites,
)
from streamgp.numerics.batched import identity_plus, inverse, log_det, rows_of, turned
from streamgp.numerics.linalg import symmetric

_NOTHING = 1e-10  # relative: what is beside the range of precisions and no more is rounding
_ROUNDING = 1e-14  # relative: what data say that is less is nothing


def before_pairs(before: Forward, moves: Moves) -> Forward:
    """Both ends (a, c) of intervals, from what is known before each of them."""
    (a, q), size = moves, moves.transition.shape[-1]
    onward = a @ before.spread
    spread = np.empty((*a.shape[:-2], 2 * size, 2 * size))
    spread[..., :size, :size] = before.spread
    spread[..., size:, :size], spread[..., :size, size:] = onward, turned(onward)
    spread[..., size:, size:] = onward @ turned(a) + q
    return Forward(np.concatenate([before.mean, a @ before.mean], axis=-2), spread)


def gained(before: Forward, moves: Moves, sites: PairSites) -> Gains:
    """What the data of consecutive intervals say of g, from what is known before each of them."""
    said = Backward(sites.linear, sites.precision)
    seen = _Seen.of(said)
    own = np.sum(sites.gram, axis=0) + _summed(seen.values, seen.values)
    return Gains(symmetric(own), 0.0) + _innovations(before_pairs(before, moves), seen, said)


def met(before: Forward, after: Backward) -> Gains:
    """What is said of g where what is known from both sides meets, in one state.

    What does not depend on `before` is left out.
    """
    return _innovations(before, _Seen.of(after), after)


class _Seen(NamedTuple):
    """Sites exp((η·g)ᵀx − ½xᵀJx) as observations of unit noise: exp(½|v·g|² − ½|w·x − v·g|²).

    Innovations of these are computed without taking differences of large numbers, as there would
    be in what is left once x is integrated out. There are no more of them than there are rows.
    """

    values: Columns  # v
    design: Float[np.ndarray, "n *K r d"]  # w

    @classmethod
    def of(cls, said: Backward) -> "_Seen":
        design, values = rows_of(said.precision, said.pull, _ROUNDING)
        return cls(values, design)


def _innovations(before: Forward, seen: _Seen, said: Backward) -> Gains:
    """−½|c·g|² in the metric of S = I + wPwᵀ, c = v − w·m, and its normaliser; summed."""
    rest = seen.values - seen.design @ before.mean
    across = before.spread @ turned(seen.design)
    total = identity_plus(seen.design @ across)
    inner = inverse(total)
    bent = inner @ rest
    gains = Gains(symmetric(-_summed(rest, bent)), -0.5 * log_det(total).sum(axis=0))
    beside = said.pull - turned(seen.design) @ seen.values
    if np.all(_largest(beside) <= _NOTHING * _largest(said.pull)):
        return gains
    # Rows without curvature pull all the same: exp((e·g)ᵀx), e what is beside the range of J.
    mean = before.mean + across @ bent
    spread = before.spread - across @ inner @ turned(across)
    more = turned(beside) @ (2.0 * mean + spread @ beside)
    return gains + Gains(symmetric(np.sum(more, axis=0)), 0.0)


def _largest(columns: Columns) -> Float[np.ndarray, "*K"] | float:
    """The largest size of a number, by chain."""
    return np.max(np.abs(columns), axis=(0, -2, -1), initial=0.0)


def _summed(left: Columns, right: Columns) -> Float[np.ndarray, "*K k k"]:
    """Σ_n leftᵀ·right."""
    return np.sum(turned(left) @ right, axis=0)
