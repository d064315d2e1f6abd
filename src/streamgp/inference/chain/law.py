"""The law of a chain: how the states of all latent functions move under some hyperparameters.

What data said is kept in the natural units of states (a function and its derivatives). The algebra
sees every number of a state in units of its own prior standard deviation, so that neither the unit
of time nor a lengthscale spoils its precision.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.elements import Forward, Moves, joined
from streamgp.kernels.state_space import StateSpace
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.batched import inverse

Times = Float[np.ndarray, " _n"]
Matrices = Float[np.ndarray, "n d d"]

_EPS = float(np.finfo(float).eps)
_FEW = 4  # times for which looking for equal gaps does not pay
_KEPT = 64  # gaps whose moves are kept
_UNSOUND = 1e10  # entries of inverses from where they are rounding


class Between(NamedTuple):
    """What the states (a, c) at the ends of an interval say of the latent functions inside it.

    Attributes:
        design: E[u_q(x) | a, c] is the sum of design·(a, c) over the entries that q owns, states
            in natural units.
        open: The variance of each latent function that they leave.
    """

    design: Float[np.ndarray, "N dd"]
    open: Float[np.ndarray, "Q N"]


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """States of Q latent functions, one after the other.

    Attributes:
        parts: The independent states.
        latent: The latent function that each part belongs to.
        latents: Q.
        origin: Where time begins.
    """

    parts: tuple[StateSpace, ...]
    latent: tuple[int, ...]
    latents: int
    origin: float

    @classmethod
    def of(cls, model: MultiTaskGP) -> "Law":
        """The law of a plain model whose kernels all are Markov."""
        parts: list[StateSpace] = []
        latent: list[int] = []
        for q, kernel in enumerate(model.latent_kernels):
            own = kernel.state_space()
            assert own is not None
            parts.extend(own)
            latent.extend([q] * len(own))
        return cls(tuple(parts), tuple(latent), sum(model.draws), float(np.ravel(model.origin)[0]))

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each part has."""
        return tuple(len(part.readout) for part in self.parts)

    @functools.cached_property
    def size(self) -> int:
        """d, how many numbers all states have together."""
        return sum(self.sizes)

    @functools.cached_property
    def owner(self) -> Int[np.ndarray, " d"]:
        """The latent function that each number belongs to."""
        return np.repeat(self.latent, self.sizes)

    @functools.cached_property
    def owns(self) -> Float[np.ndarray, "Q dd"]:
        """One where a latent function owns a number of two states (a, c), else zero."""
        return owned(self.owner, self.latents)

    @functools.cached_property
    def owner_of_two(self) -> Int[np.ndarray, " dd"]:
        """The same for two states (a, c)."""
        return np.tile(self.owner, 2)

    @functools.cached_property
    def scale_of_two(self) -> Float[np.ndarray, " dd"]:
        """The scale of two states (a, c)."""
        return np.tile(self.scale, 2)

    @functools.cached_property
    def scale(self) -> Float[np.ndarray, " d"]:
        """The prior standard deviation of each number, about the origin of time."""
        return scale_of(np.diagonal(self.covariance(self.origin)))

    @property
    def numbers(self) -> Float[np.ndarray, " n"]:
        """The numbers of all parts."""
        return np.array([number for part in self.parts for number in part.numbers()])

    @functools.cached_property
    def variance(self) -> Float[np.ndarray, " Q"]:
        """The prior variance of each latent function, about the origin of time."""
        found = np.zeros(self.latents)
        for part, q in zip(self.parts, self.latent, strict=True):
            found[q] += part.readout @ part.covariance(0.0) @ part.readout
        return found

    @functools.cached_property
    def resolution(self) -> float:
        """The longest interval whose ends tell nearly all of it."""
        return min(part.resolution for part in self.parts)

    def start(self, time: float, columns: int) -> Forward:
        """What is known of the states at a time before any data, scaled."""
        scale = 1.0 / self.scale
        covariance = self.covariance(time) * np.outer(scale, scale)
        return Forward(np.zeros((1, self.size, columns)), covariance[None])

    def moves(self, times: Times) -> Moves:
        """A and Q from each time to the next, scaled. Most gaps of a chain are equal."""
        if len(times) <= _FEW:
            return joined(*(self._move(b - a) for a, b in itertools.pairwise(times.tolist())))
        gaps, which = distinct_gaps(times)
        moves = self.moves_over(gaps)
        return Moves(moves.transition[which], moves.noise[which])

    def _move(self, gap: float) -> Moves:
        """Over one gap. The times of a stream come at equal gaps, so the last ones are kept."""
        found = self._moves.get(gap)
        if found is None:
            if len(self._moves) >= _KEPT:
                self._moves.clear()
            found = self._moves[gap] = self.moves_over(np.array([gap]))
        return found

    @functools.cached_property
    def _moves(self) -> dict[float, Moves]:
        return {}

    def moves_over(self, gaps: Times) -> Moves:
        """A and Q over gaps, scaled."""
        return self._scaled(*self.transitions(gaps))

    def transitions(self, gaps: Times) -> tuple[Matrices, Matrices]:
        """A and Q over gaps, in natural units."""
        if len(self.parts) == 1:
            return self.parts[0].transition(gaps)
        a, q = np.zeros((2, len(gaps), self.size, self.size))
        for part, own in self.slices():
            a[:, own, own], q[:, own, own] = part.transition(gaps)
        return a, q

    def between(self, left: Times, x: Times, right: Times) -> Between:
        """Each x between two states, one before it and one after it."""
        if len(x) > 1:
            since, until, which = distinct_places(left, x, right)
            design, left_open = self._between(since, until)
            return Between(design[which], left_open[:, which])
        place = float(x[0] - left[0]), float(right[0] - x[0])
        found = self._betweens.get(place)
        if found is None:
            if len(self._betweens) >= _KEPT:
                self._betweens.clear()
            found = self._betweens[place] = self._between(*map(np.atleast_1d, place))
        return found

    @functools.cached_property
    def _betweens(self) -> dict[tuple[float, float], Between]:
        return {}

    def _between(self, since: Times, until: Times) -> Between:
        count = len(since)
        design, left_open = np.zeros((count, 2 * self.size)), np.zeros((self.latents, count))
        for (part, own), q in zip(self.slices(), self.latent, strict=True):
            far = slice(own.start + self.size, own.stop + self.size)
            bridge = bridged(part, since, until)
            h = part.readout
            design[:, own], design[:, far] = h @ bridge.near, h @ bridge.far
            left_open[q] += h @ bridge.spread @ h
        return Between(design, np.maximum(left_open, 0.0))

    def beyond(self, gaps: Times) -> Between:
        """Each x that far after the second of two states."""
        design, left_open = (
            np.zeros((len(gaps), 2 * self.size)),
            np.zeros((self.latents, len(gaps))),
        )
        for (part, own), q in zip(self.slices(), self.latent, strict=True):
            h, (a, noise) = part.readout, part.transition(gaps)
            design[:, own.start + self.size : own.stop + self.size] = h @ a
            left_open[q] += h @ noise @ h
        return Between(design, np.maximum(left_open, 0.0))

    def ahead(self, gaps: Times) -> Between:
        """Each x that far before the first of two states."""
        design, left_open = (
            np.zeros((len(gaps), 2 * self.size)),
            np.zeros((self.latents, len(gaps))),
        )
        for (part, own), q in zip(self.slices(), self.latent, strict=True):
            back, noise = reversed_in_time(part, gaps)
            design[:, own] = part.readout @ back
            left_open[q] += part.readout @ noise @ part.readout
        return Between(design, np.maximum(left_open, 0.0))

    def pair_covariance(self, left: float, right: float) -> Float[np.ndarray, "dd dd"]:
        """Of the states at two times, before any data, in natural units."""
        (a,), (q,) = self.transitions(np.array([right - left]))
        first = self.covariance(left)
        across = a @ first
        return np.block([[first, across.T], [across, across @ a.T + q]])

    def bridge(self, since: Times, until: Times) -> "Bridge":
        """All states between two others, in natural units."""
        n, size = len(since), self.size
        near, far, spread = np.zeros((3, n, size, size))
        for part, own in self.slices():
            near[:, own, own], far[:, own, own], spread[:, own, own] = bridged(part, since, until)
        return Bridge(near, far, spread)

    def slices(self) -> Iterator[tuple[StateSpace, slice]]:
        """Each part, and where its numbers are."""
        begin = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            yield part, slice(begin, begin + size)
            begin += size

    def covariance(self, time: float) -> Float[np.ndarray, "d d"]:
        """Of all states at a time, before any data, in natural units."""
        found = np.zeros((self.size, self.size))
        for part, own in self.slices():
            found[own, own] = part.covariance(time - self.origin)
        return found

    def _scaled(self, a: Matrices, q: Matrices) -> Moves:
        scale = self.scale
        return Moves(a * (scale / scale[:, None]), q / np.outer(scale, scale))


def owned(owner: Int[np.ndarray, " d"], latents: int) -> Float[np.ndarray, "Q dd"]:
    """One where a latent function owns a number of two states (a, c), else zero."""
    return (np.tile(owner, 2) == np.arange(latents)[:, None]) * 1.0


def scale_of(variances: Float[np.ndarray, "*K d"]) -> Float[np.ndarray, "*K d"]:
    """The standard deviation of each number, one where that is nothing."""
    return np.sqrt(np.where(variances > 0, variances, 1.0))


def reversed_in_time(part: StateSpace, gaps: Times) -> tuple[Matrices, Matrices]:
    """s(t − gap) = B·s(t) + noise of covariance R: B and R."""
    if not np.isfinite(part.resolution):  # without noise the way back is the way
        return part.transition(-gaps)
    a, _ = part.transition(gaps)
    stationary = part.covariance(0.0)
    scale = np.sqrt(np.diagonal(stationary))
    unit = stationary / np.outer(scale, scale)
    onward = np.swapaxes(a * (scale / scale[:, None]), 1, 2)  # Aᵀ, scaled
    back = unit @ onward @ np.linalg.inv(unit)
    noise = unit - back @ unit @ np.swapaxes(back, 1, 2)
    noise = 0.5 * (noise + np.swapaxes(noise, 1, 2))
    return back * (scale[:, None] / scale), noise * np.outer(scale, scale)


def distinct_gaps(times: Times) -> tuple[Times, Int[np.ndarray, " n"]]:
    """The gaps between times, those that differ by rounding only once, and which each one is."""
    gaps = np.diff(times)
    order = np.argsort(gaps)
    ordered = gaps[order]
    rounding = 8 * _EPS * float(np.max(np.abs(times[[0, -1]])))
    is_new = np.concatenate([[True], np.diff(ordered) > rounding])
    which = np.empty(len(gaps), int)
    which[order] = np.cumsum(is_new) - 1
    return ordered[is_new], which


def distinct_places(
    left: Times, x: Times, right: Times
) -> tuple[Times, Times, Int[np.ndarray, " n"]]:
    """How far each x is from both ends of its interval, and which of these it is.

    Places that differ by rounding only are one, as those of rows at equal gaps are.
    """
    since, until = x - left, right - x
    order = np.argsort(since)
    rounding = 8 * _EPS * float(np.max(np.abs(x)))
    is_new = np.ones(len(x), bool)
    is_new[1:] = np.diff(since[order]) > rounding
    is_new[1:] |= np.abs(np.diff(until[order])) > rounding
    which = np.empty(len(x), int)
    which[order] = np.cumsum(is_new) - 1
    return since[order][is_new], until[order][is_new], which


class Bridge(NamedTuple):
    """A state between two others: near·a + far·c + N(0, spread)."""

    near: Matrices
    far: Matrices
    spread: Matrices


def bridged(part: StateSpace, since: Times, until: Times) -> Bridge:
    """One state between two others, in natural units.

    With s = A₁a + noise Q₁ and c = A₂s + noise Q₂, the gain of c is G = Q₁A₂ᵀ(A₂Q₁A₂ᵀ + Q₂)⁻¹.
    """
    size = len(part.readout)
    at_end = until <= 0.0  # the second state itself, without rounding
    if at_end.any():
        bridge = Bridge(*np.zeros((3, len(since), size, size)))
        bridge.far[at_end] = np.eye(size)
        if not at_end.all():
            inside = bridged(part, since[~at_end], until[~at_end])
            for own, found in zip(bridge, inside, strict=True):
                own[~at_end] = found
        return bridge
    a1, q1 = part.transition(since)
    if math.isfinite(part.resolution):
        return _bridged(a1, q1, *part.transition(until))
    return Bridge(a1, np.zeros_like(a1), np.zeros_like(a1))  # the first state tells all


def _bridged(a1: Matrices, q1: Matrices, a2: Matrices, q2: Matrices) -> Bridge:
    crossed = a2 @ q1  # its transpose is Q₁A₂ᵀ
    total = crossed @ np.swapaxes(a2, 1, 2) + q2
    # Entries differ by powers of the gap; scaled to a unit diagonal the matrix is well-conditioned.
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(total, axis1=1, axis2=2), 1e-300))
    unit = total * scale[:, :, None] * scale[:, None, :]
    far = scale[:, :, None] * (_inverse(unit) @ (scale[:, :, None] * crossed))
    far = np.swapaxes(far, 1, 2)
    spread = q1 - far @ crossed
    return Bridge(a1 - far @ a2 @ a1, far, 0.5 * (spread + np.swapaxes(spread, 1, 2)))


def _inverse(unit: Matrices) -> Matrices:
    """The inverse of matrices with a unit diagonal, on what rounding has left of them.

    Over a gap that is nearly nothing, the noise of smooth processes is rounding. Such a matrix may
    be singular or worse. The diagonal of an inverse of a sound one is at least one.
    """
    with np.errstate(all="ignore"):
        found = inverse(unit)
    diagonal = np.diagonal(found, axis1=1, axis2=2)
    odd = ~np.all((diagonal > 0.99) & (diagonal < _UNSOUND), axis=1)
    odd &= np.isfinite(unit).all(axis=(1, 2))
    if odd.any():
        values, vectors = np.linalg.eigh(unit[odd])
        kept = values > 1.0 / _UNSOUND
        weights = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
        found[odd] = (vectors * weights[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return found
