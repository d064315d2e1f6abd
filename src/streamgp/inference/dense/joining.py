"""Joining: a table that has grown beyond its limit, with fewer rows that say nearly the same.

Two rows of a channel with precisions m and n, taken for one, lose ½ mn/(m + n)·Var_q(f − f') nats
in expectation. The pairs that lose least are joined, many at a time. What is joined is what rows
have over the present posterior mean, so that no known change of f counts as noise. Rows of normal
noise add up: count, mean, and an energy that takes up Var_q(f − f'). Others are joined as sites.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from streamgp.data.batch import Rows
from streamgp.inference.dense.design import Design, covariance, variances
from streamgp.inference.dense.state import DenseState
from streamgp.inference.e_step import exact_sites_at
from streamgp.inference.kept import ROOM, Kept, joined, joined_as_sites, lost_by_joining
from streamgp.model.mixing import offsets
from streamgp.model.multitask import Channel, MultiTaskGP

_NEAR = 8  # rows that each row is compared with, those whose f is most alike a priori
_TOGETHER = 512  # pairs whose ℓ are held at once
_AT_ONCE = 4  # one part in so many rows may be joined before costs are looked at again


class Pairs(NamedTuple):
    """Rows that become one, by their places in the table."""

    one: Int[np.ndarray, " n"]
    other: Int[np.ndarray, " n"]

    def take(self, which: np.ndarray) -> "Pairs":
        """Some of them."""
        return Pairs(self.one[which], self.other[which])


class _Known(NamedTuple):
    """What is known of the rows of a table, whose J latent parameters lie in a row.

    Attributes:
        explained: ℓ of each, (n, J, R).
        mean: E_q[f] less offsets.
        design: Of all latent parameters.
        linear: b of each row's site.
        precision: P.
    """

    explained: Float[np.ndarray, "n J R"]
    mean: Float[np.ndarray, "n J"]
    design: Design
    linear: Float[np.ndarray, "n J"]
    precision: Float[np.ndarray, "n J J"]


def limited(state: DenseState, keep: int | None) -> DenseState:
    """The state with no more rows than there may be.

    Args:
        state: With all rows.
        keep: The limit; None for none.
    """
    if keep is None or state.size <= ROOM * keep:
        return state
    while state.size > keep:
        kept = state.kept.take(slice(state.closed))
        chosen, more = np.ones(state.size, bool), []
        left = state.size - keep
        for number in np.unique(kept.channel):
            own = np.flatnonzero(kept.channel == number)
            part = -(-left * len(own) // len(kept.channel))
            pairs, new = _joined(state, kept, own, min(part, max(len(own) // _AT_ONCE, 1)))
            chosen[np.concatenate(pairs)] = False
            more.append(new)
        if chosen.all():  # no channel has two rows
            return state
        rows = joined([*more, state.kept.take(chosen)])
        closed = state.closed - int(np.count_nonzero(~chosen)) // 2
        state = state.following(rows, closed)
    return state


def _joined(
    state: DenseState, kept: Kept, own: Int[np.ndarray, " c"], most: int
) -> tuple[Pairs, Kept]:
    """The pairs of a channel's rows that lose least, and what becomes of them."""
    rows = kept.take(own)
    if len(own) < 2:
        return Pairs(own[:0], own[:0]), rows.take(slice(0))
    known = _known(state, rows)
    pairs, apart = _candidates(state.plain, known)
    spread = np.maximum(apart - _explained_apart(known, pairs), 0.0)  # Var_q(f − f')
    cost = lost_by_joining(known.precision[pairs.one], known.precision[pairs.other], spread)
    which = _disjoint(pairs, np.argsort(cost, kind="stable"), len(own), most)
    pairs, spread = pairs.take(which), spread[which]
    new = _of_pairs(state, rows, known, pairs, spread)
    return Pairs(own[pairs.one], own[pairs.other]), new


def _known(state: DenseState, rows: Kept) -> _Known:
    """What is known of rows of one channel."""
    model, batch = state.plain, rows.batch(state.plain)
    back = np.argsort(batch.order)
    design, latents = Design.of(model, batch), batch.runs[0].latents
    places = (back[:, None] * latents + np.arange(latents)).ravel()
    design = design.take(places)
    explained = state.factor.explained(design)
    sites = exact_sites_at(model, batch, offsets(model, batch), rows.sites(batch))
    return _Known(
        explained.T.reshape(len(back), latents, -1),
        (explained.T @ state.factor.z).reshape(-1, latents),
        design,
        sites.linear[places].reshape(-1, latents),
        sites.precision[0][back],
    )


def _candidates(model: MultiTaskGP, known: _Known) -> tuple[Pairs, Float[np.ndarray, "p J"]]:
    """Each row with those that are most like it, and E[(f − f')²] before any data."""
    size, latents = known.mean.shape
    total, own = np.zeros((size, size)), []
    for j in range(latents):
        part = known.design.take(slice(j, None, latents))
        kernels = model.latent_kernels
        own.append(_apart(variances(kernels, part), covariance(kernels, part, part)))
        total += own[-1]
    np.fill_diagonal(total, np.inf)
    count = min(_NEAR, size - 1)
    near = np.argpartition(total, count - 1, axis=1)[:, :count]
    one, other = np.repeat(np.arange(size), count), near.ravel()
    low, high = np.minimum(one, other), np.maximum(one, other)
    place = np.unique(low * size + high)
    pairs = Pairs(place // size, place % size)
    return pairs, np.stack([apart[pairs.one, pairs.other] for apart in own], axis=1)


def _apart(variance: np.ndarray, shared: np.ndarray) -> np.ndarray:
    return np.maximum(variance[:, None] + variance - 2 * shared, 0.0)


def _explained_apart(known: _Known, pairs: Pairs) -> Float[np.ndarray, "p J"]:
    """What rows explain of Var(f − f')."""
    found = np.empty((len(pairs.one), known.mean.shape[1]))
    for at in range(0, len(found), _TOGETHER):
        own = slice(at, at + _TOGETHER)
        step = known.explained[pairs.one[own]] - known.explained[pairs.other[own]]
        found[own] = np.einsum("pjr,pjr->pj", step, step)
    return found


def _disjoint(
    pairs: Pairs, order: Int[np.ndarray, " p"], count: int, most: int
) -> Int[np.ndarray, " n"]:
    """The first pairs in an order in which every row stands once, at most so many."""
    free: Bool[np.ndarray, " c"] = np.ones(count, bool)
    chosen: list[int] = []
    for place in order.tolist():
        one, other = pairs.one[place], pairs.other[place]
        if free[one] and free[other]:
            free[one] = free[other] = False
            chosen.append(place)
            if len(chosen) == most:
                break
    return np.array(chosen, int)


def _of_pairs(
    state: DenseState, rows: Kept, known: _Known, pairs: Pairs, spread: Float[np.ndarray, "n J"]
) -> Kept:
    """One row in the place of each pair."""
    one, other, model = rows.take(pairs.one), rows.take(pairs.other), state.plain
    count = one.count + other.count
    share = (one.count / count)[:, None]
    middle = share * one.x + (1 - share) * other.x
    x = np.where(_is_between(model, one, other, middle)[:, None], middle, _heavier(one, other))
    there = state.marginals(
        model.batch(Rows(x, np.full(one.y.shape, np.nan), one.channel.astype(int)))
    )
    latents = known.mean.shape[1]
    mean = there.centred.reshape(-1, latents)
    likelihood = model.channels[int(one.channel[0])].likelihood
    if likelihood.adds_up:
        offset = there.mean - there.centred
        rest = [
            likelihood.summable(own.y[:, 0]) - offset - known.mean[at, 0]
            for own, at in zip((one, other), pairs, strict=True)
        ]
        y = np.full(one.y.shape, np.nan)
        value = there.mean + share[:, 0] * rest[0] + (1 - share[:, 0]) * rest[1]
        y[:, 0] = likelihood.of_sums(value)
        mass = one.count * other.count / count
        energy = one.energy + other.energy + mass * ((rest[0] - rest[1]) ** 2 + spread[:, 0])
        return dataclasses.replace(one, x=x, y=y, count=count, energy=energy)
    sites = [(known.linear[at], known.precision[at]) for at in pairs]
    return joined_as_sites(x, (one, other), sites, [known.mean[at] - mean for at in pairs])


def _heavier(one: Kept, other: Kept) -> Float[np.ndarray, "n P"]:
    return np.where((one.count >= other.count)[:, None], one.x, other.x)


def _is_between(
    model: MultiTaskGP, one: Kept, other: Kept, middle: Float[np.ndarray, "n P"]
) -> Bool[np.ndarray, " n"]:
    """Whether functions between two inputs are like those at both, as they are not if they turn.

    Those of kernels, and mean functions.
    """
    found = _has_mean_between(model.channels[int(one.channel[0])], one.x, other.x, middle)
    for kernel in model.latent_kernels:
        a, b, c = one.x - model.origin, other.x - model.origin, middle - model.origin
        ab, ac, bc = (np.diagonal(kernel.matrix(u, v)) for u, v in ((a, b), (a, c), (b, c)))
        own = kernel.diagonal(a), kernel.diagonal(b), kernel.diagonal(c)
        whole = own[0] + own[1] - 2 * ab
        found &= own[0] + own[2] - 2 * ac <= whole + 1e-9 * own[0]
        found &= own[1] + own[2] - 2 * bc <= whole + 1e-9 * own[1]
    return found


def _has_mean_between(
    channel: Channel,
    one: Float[np.ndarray, "n P"],
    other: Float[np.ndarray, "n P"],
    middle: Float[np.ndarray, "n P"],
) -> Bool[np.ndarray, " n"]:
    """Whether the mean functions of a channel are no further off in the middle than at the ends."""
    size = np.sqrt(np.sum(channel.spread**2, axis=0))
    a, b, c = (size * channel.mean(x) for x in (one, other, middle))
    ab, ac, bc = (np.sum((u - v) ** 2, axis=1) for u, v in ((a, b), (a, c), (b, c)))
    return np.maximum(ac, bc) <= ab + 1e-9 * np.sum(size**2)
