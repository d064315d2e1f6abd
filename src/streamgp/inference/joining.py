"""Joining: which cells become one when there are too many.

Two cells of masses m and n whose latent parameters differ by δ lose ½ mn/(m + n) δ² nats if they
are taken for one. A priori E[δ²] is k(x, x) + k(x', x') − 2k(x, x'), so that inputs which do not
matter do not keep cells apart. So do mean functions that differ, by the variance of their weights.
The pairs that lose least are joined.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.inference import scatter
from streamgp.inference.cells import Cells
from streamgp.inference.state import State
from streamgp.model.multitask import MultiTaskGP

ROOM = 1.4  # cells may be that many times as many before some are joined
_STRETCH = 64  # cells over one input that are compared with each other
_BLOCK = 2048  # the same over several inputs
_AT_ONCE = 4  # one part in so many may be joined in one round

Pairs = tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]


def with_few_cells(state: State, limit: int) -> State:
    """The state with at most so many cells, if it has far more."""
    if state.cells is None or state.cells.size <= ROOM * limit:
        return state
    cells = state.cells
    while cells.size > limit:
        pairs = _nearest(state.plain, cells, cells.size - limit)
        if not len(pairs[0]):  # every channel has one cell
            break
        cells = _joined(state, cells, pairs)
    fewer = state.replace(cells=cells)
    known = ("plain", "prior", "reading", "site", "posterior")
    vars(fewer).update({name: vars(state)[name] for name in known if name in vars(state)})
    return fewer


def _nearest(model: MultiTaskGP, cells: Cells, most: int) -> Pairs:
    """Pairs of cells that lose least when they are joined. No cell is in two of them."""
    costs, lefts, rights = [], [], []
    for own in _neighbourhoods(model, cells):
        cost = _costs(model, cells, own)
        partner = np.argmin(cost, axis=1)
        costs.append(cost[np.arange(len(own)), partner])
        lefts.append(own)
        rights.append(own[partner])
    cost = np.concatenate(costs)
    order = np.argsort(cost, kind="stable")[: int(np.isfinite(cost).sum())]
    left, right = np.concatenate(lefts)[order], np.concatenate(rights)[order]
    return _disjoint(left, right, cells.size, max(min(most, cells.size // _AT_ONCE), 1))


def _neighbourhoods(model: MultiTaskGP, cells: Cells) -> Iterator[Int[np.ndarray, " n"]]:
    """Cells among which pairs are looked for: those of a channel that are not too far apart.

    What comparing them takes is in the square of their number, so that there is a limit to it.
    """
    for channel in np.unique(cells.channel):
        own = np.flatnonzero(cells.channel == channel)
        if cells.x.shape[1] > 1:
            yield from _blocks(model, cells, own)
            continue
        own = own[np.argsort(cells.x[own, 0], kind="stable")]
        yield from (own[begin : begin + _STRETCH] for begin in range(0, len(own), _STRETCH))


def _blocks(
    model: MultiTaskGP, cells: Cells, own: Int[np.ndarray, " n"]
) -> Iterator[Int[np.ndarray, " n"]]:
    """Cells in halves, quarters and so on, split where their function changes most."""
    if len(own) <= _BLOCK:
        yield own
        return
    low, middle, high = np.quantile(cells.x[own], (0.25, 0.5, 0.75), axis=0)
    lows, highs = (np.where(np.eye(len(middle), dtype=bool), end, middle) for end in (low, high))
    split = int(np.argmax(np.diagonal(_apart(model, int(cells.channel[own[0]]), lows, highs))))
    own = own[np.argsort(cells.x[own, split], kind="stable")]
    half = len(own) // 2
    yield from _blocks(model, cells, own[:half])
    yield from _blocks(model, cells, own[half:])


def _costs(
    model: MultiTaskGP, cells: Cells, own: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n n"]:
    """What is lost if two of these cells, of one channel, are joined; endless on the diagonal."""
    number = int(cells.channel[own[0]])
    channel = model.channels[number]
    x, mass = cells.x[own], channel.likelihood.strength * cells.mass[own]
    apart = _apart(model, number, x, x)
    basis = cells.basis[own, : channel.spread.shape[1]]
    for column, spread in zip(basis.T, np.sum(channel.spread**2, axis=0), strict=True):
        if np.ptp(column):
            apart += spread * (column[:, None] - column) ** 2
    common = np.outer(mass, mass) / np.maximum(mass[:, None] + mass, 1e-300)
    cost = common * np.maximum(apart, 0.0)
    np.fill_diagonal(cost, np.inf)
    return cost


def _apart(
    model: MultiTaskGP, channel: int, x: Float[np.ndarray, "n P"], y: Float[np.ndarray, "m P"]
) -> Float[np.ndarray, "n m"]:
    """E[δ²] a priori: how far a channel's latent parameters differ between inputs."""
    x, y = x - model.origin, y - model.origin
    apart = np.zeros((len(x), len(y)))
    for kernel, loading in zip(
        model.latent_kernels, model.channels[channel].loadings.T, strict=True
    ):
        left, right = kernel.diagonal(x), kernel.diagonal(y)
        apart += float(loading @ loading) * (left[:, None] + right - 2 * kernel.matrix(x, y))
    return apart


def _disjoint(
    left: Int[np.ndarray, " n"], right: Int[np.ndarray, " n"], count: int, most: int
) -> Pairs:
    """The first pairs in which every cell stands once, at most so many."""
    free: Bool[np.ndarray, " C"] = np.ones(count, bool)
    chosen: list[tuple[int, int]] = []
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        if free[one] and free[other]:
            free[one] = free[other] = False
            chosen.append((one, other))
            if len(chosen) == most:
                break
    first, second = np.array(chosen, int).reshape(-1, 2).T
    return first, second


def _joined(state: State, cells: Cells, pairs: Pairs) -> Cells:
    one, other = pairs
    mass = np.maximum(cells.mass, 1e-300)
    share = (mass[one] / (mass[one] + mass[other]))[:, None]
    step = scatter.steps(state.plain, cells, pairs, state.prior, state.posterior)

    def averaged(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[one] = share * values[one] + (1 - share) * values[other]
        return np.delete(values, other, axis=0)

    def summed(values: np.ndarray, more: np.ndarray | float = 0.0) -> np.ndarray:
        values = values.copy()
        values[one] += values[other] + more
        return np.delete(values, other, axis=0)

    return dataclasses.replace(
        cells,
        x=averaged(cells.x),
        channel=np.delete(cells.channel, other),
        basis=averaged(cells.basis),
        linear=summed(cells.linear),
        precision=summed(cells.precision),
        path=summed(cells.path, step.path),
        varied=summed(cells.varied, step.varied),
        explained=summed(cells.explained, step.explained),
    )
