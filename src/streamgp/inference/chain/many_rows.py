"""One row of many chains at a time.

Given g = (1, β), a row with site (b, p) on f = N(m·g, s) says of g

    ½gᵀΓg + ε,  Γ = (b(m e₀ᵀ + e₀mᵀ) − p·mmᵀ + b²s·e₀e₀ᵀ)/(1 + ps),  ε = −½log(1 + ps),

and moves states by a rank of one.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.stretch import Pairs


class SeenRows(NamedTuple):
    """Rows as f = design·x + basis·β, and their sites (b, p)."""

    design: Float[np.ndarray, "R dd"]
    basis: Float[np.ndarray, "R K"]
    linear: Float[np.ndarray, " R"]
    precision: Float[np.ndarray, " R"]


class RowsOf(NamedTuple):
    """Where the rows of some intervals begin, and how many there are."""

    begin: Int[np.ndarray, " n"]
    number: Int[np.ndarray, " n"]


class Told(NamedTuple):
    """What rows say of g, by chain, to be added to; and the chain of each interval."""

    gram: Float[np.ndarray, "K k k"]
    evidence: Float[np.ndarray, " K"]
    chain: Int[np.ndarray, " n"]


def learn(pair: Pairs, seen: SeenRows, rows: RowsOf, told: Told) -> None:
    """Condition states on the rows of their intervals, which changes them in place."""
    for turn in range(int(rows.number.max(initial=0))):
        busy = np.flatnonzero(rows.number > turn)
        row, chain = rows.begin[busy] + turn, told.chain[busy]
        design, b, p = seen.design[row], seen.linear[row], seen.precision[row]
        every = len(busy) == len(rows.number)
        mean = pair.mean if every else pair.mean[busy]
        covariance = pair.covariance if every else pair.covariance[busy]
        reach = (covariance @ design[:, :, None])[:, :, 0]
        by_g = (design[:, None, :] @ mean)[:, 0]
        by_g[:, 1:] += seen.basis[row]
        spread = np.einsum("ni,ni->n", design, reach)
        part = 1.0 / (1.0 + p * spread)
        pull = -p[:, None] * by_g
        pull[:, 0] += b
        moved = reach[:, :, None] * (part[:, None] * pull)[:, None, :]
        gone = (reach * (p * part)[:, None])[:, :, None] * reach[:, None, :]
        if every:
            pair.mean[...] += moved
            pair.covariance[...] -= gone
        else:
            pair.mean[busy] = mean + moved
            pair.covariance[busy] = covariance - gone
        said = -(p * part)[:, None, None] * by_g[:, :, None] * by_g[:, None, :]
        toward = (b * part)[:, None] * by_g
        said[:, :, 0] += toward
        said[:, 0] += toward
        said[:, 0, 0] += b**2 * spread * part
        told.gram[chain] += said  # every chain once
        told.evidence[chain] += 0.5 * np.log(part)
