"""Stretches of a chain of states, and how neighbours become one.

Whatever lies between two states a and c of a chain (transitions, data) comes to

    p(c | a, data) = N(c; A·a + b·g, C)   and   p(data | a) ∝ exp((η·g)ᵀa − ½aᵀJa),

where g = (1, β) has the weights β of the mean functions, which all states share: b and η have one
column for each number of g, so that everything is known for all β at once. Two neighbours make one
element of the same form, in any grouping (Särkkä & García-Fernández, 2021). Covariances are never
inverted: parts without noise (constants, oscillations) and stretches without data are allowed.

The first axis of every array counts intervals or states. There may be a second one that counts
chains, as many as are worked on together.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from streamgp.numerics.batched import identity_plus, inverse, turned
from streamgp.numerics.linalg import symmetric

Matrices = Float[np.ndarray, "n *K d d"]
Columns = Float[np.ndarray, "n *K d k"]
Which = slice | np.ndarray

T = TypeVar("T", bound=NamedTuple)


class Moves(NamedTuple):
    """How states move over each interval: N(c; A·a, Q)."""

    transition: Matrices  # A
    noise: Matrices  # Q


class PairSites(NamedTuple):
    """What data within each interval say of the states (a, c) at its ends and of β.

    exp((r·g)ᵀx − ½xᵀΛx + ½gᵀΓg) with x = (a, c); r has one column for each number of g.
    """

    linear: Float[np.ndarray, "n *K dd k"]  # r
    precision: Float[np.ndarray, "n *K dd dd"]  # Λ
    gram: Float[np.ndarray, "n *K k k"]  # Γ

    def __add__(self, other: "PairSites") -> "PairSites":  # type: ignore[override]
        return PairSites(*(a + b for a, b in zip(self, other, strict=True)))


class Elements(NamedTuple):
    """Stretches of a chain; the first axis counts them."""

    transition: Matrices  # A
    shift: Columns  # b
    spread: Matrices  # C
    pull: Columns  # η
    precision: Matrices  # J


class Forward(NamedTuple):
    """What all data before some states say of them: N(mean·g, spread)."""

    mean: Columns
    spread: Matrices


class Backward(NamedTuple):
    """What all data after some states say of them: exp((pull·g)ᵀs − ½sᵀ·precision·s)."""

    pull: Columns
    precision: Matrices


class Gains(NamedTuple):
    """What data say of g, exp(½gᵀΓg + ε), once the states are integrated out."""

    gram: Float[np.ndarray, "*K k k"]
    evidence: float  # of several chains an array

    def __add__(self, other: "Gains") -> "Gains":  # type: ignore[override]
        return Gains(self.gram + other.gram, self.evidence + other.evidence)

    def __sub__(self, other: "Gains") -> "Gains":
        return Gains(self.gram - other.gram, self.evidence - other.evidence)


def taken(parts: T, which: Which) -> T:
    """Some of the elements, messages, moves or sites."""
    return parts._make([part[which] for part in parts])


def joined(*pieces: T) -> T:
    """Pieces one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    return type(pieces[0])(*map(np.concatenate, zip(*pieces, strict=True)))  # type: ignore[call-overload]


def silent(*shape: int) -> Backward:
    """No data at all, after one state: its size and the columns, chains before them if several."""
    *chains, size, columns = shape
    return Backward(np.zeros((1, *chains, size, columns)), np.zeros((1, *chains, size, size)))


def is_silent(message: Backward) -> bool:
    """Whether there were no data."""
    return not (message.precision.any() or message.pull.any())


# -- two become one --------------------------------------------------------------------------------


def of_intervals(moves: Moves, sites: PairSites) -> Elements:
    """One element per interval: its transition, and what its data say of its two ends."""
    transition, noise = moves
    size = transition.shape[-1]
    r_a, r_c = sites.linear[..., :size, :], sites.linear[..., size:, :]
    aa, ac = sites.precision[..., :size, :size], sites.precision[..., :size, size:]
    ca, cc = sites.precision[..., size:, :size], sites.precision[..., size:, size:]
    after, shift, spread = _solved(noise, cc, transition - noise @ ca, noise @ r_c)
    spread = symmetric(spread)
    moved = ca + cc @ transition  # what data at c ask of a, before noise is allowed for
    bent, back = turned(moved) @ spread, turned(transition)
    precision = aa + ac @ transition + back @ moved - bent @ moved
    pull = r_a + back @ r_c - bent @ r_c
    return Elements(after, shift, spread, pull, symmetric(precision))


def combined(left: Elements, right: Elements) -> Elements:
    """Each element of `left` and the one after it as one."""
    through, middle, spread = _solved(
        left.spread, right.precision, left.transition, left.shift + left.spread @ right.pull
    )
    onward, back = right.transition, turned(through)
    return Elements(
        onward @ through,
        onward @ middle + right.shift,
        symmetric(onward @ spread @ turned(onward)) + right.spread,
        back @ (right.pull - right.precision @ left.shift) + left.pull,
        symmetric(turned(left.transition) @ right.precision @ through) + left.precision,
    )


def carried(message: Forward, elements: Elements) -> Forward:
    """What is known at the far end of each element, from what is known at its near end."""
    mean, spread = _solved(
        message.spread, elements.precision, message.mean + message.spread @ elements.pull
    )
    onward = elements.transition
    return Forward(
        onward @ mean + elements.shift,
        symmetric(onward @ spread @ turned(onward)) + elements.spread,
    )


def reached(message: Forward, moves: Moves) -> Forward:
    """What is known after each of some moves without data, all of them from one state."""
    a, q = moves
    return Forward(a @ message.mean, symmetric(a @ message.spread @ turned(a)) + q)


def returned(elements: Elements, message: Backward) -> Backward:
    """What later data say at the near end of each element, from what they say at its far end."""
    (through, _) = _solved(elements.spread, message.precision, elements.transition)
    said = symmetric(turned(elements.transition) @ message.precision @ through)
    rest = message.pull - message.precision @ elements.shift
    return Backward(turned(through) @ rest + elements.pull, said + elements.precision)


def known_of(before: Forward, after: Backward) -> Forward:
    """States from what all data say of them, earlier and later ones."""
    mean, spread = _solved(before.spread, after.precision, before.mean + before.spread @ after.pull)
    return Forward(mean, symmetric(spread))


def conditioned(elements: Elements, message: Backward) -> tuple[Matrices, Columns, Matrices]:
    """T, b and C of each element given all data: its far state is N(T·(near state) + b·g, C)."""
    through, shift, spread = _solved(
        elements.spread,
        message.precision,
        elements.transition,
        elements.shift + elements.spread @ message.pull,
    )
    return through, shift, symmetric(spread)


def onward(elements: Elements, message: Backward) -> Matrices:
    """T of each element: given all data, its far state is T·(near state) + what is independent."""
    through, _ = _solved(elements.spread, message.precision, elements.transition)
    return through


# -- many at once ----------------------------------------------------------------------------------


class Tree(NamedTuple):
    """Elements in a row, pairs of them, pairs of pairs, … as long as there are more than two."""

    levels: list[Elements]

    @classmethod
    def of(cls, elements: Elements) -> "Tree":
        """Where a level has an odd number of elements, the last goes up by itself."""
        levels = [elements]
        while len(levels[-1].shift) > 2:
            levels.append(_in_pairs(levels[-1]))
        return cls(levels)

    @property
    def whole(self) -> Elements:
        """All elements as one."""
        last = self.levels[-1]
        return _in_pairs(last) if len(last.shift) > 1 else last

    def forward(self, first: Forward) -> Forward:
        """What is known before each element, and last after all of them."""
        messages = first
        for below in self.levels[::-1]:
            pairs = len(below.shift) // 2
            # The message before a pair is that before its first; carry it on to its second.
            near = taken(messages, slice(pairs))
            inner = carried(near, taken(below, slice(0, 2 * pairs, 2)))
            messages = _interleaved(messages, inner)
        last = carried(taken(messages, slice(-1, None)), taken(self.levels[0], slice(-1, None)))
        return joined(messages, last)

    def backward(self, last: Backward) -> Backward:
        """What is said after each element by all that follows, and first of all before them."""
        messages = last
        for below in self.levels[::-1]:
            # The message after a pair is that after its second; bring it back to its first.
            pairs = len(below.shift) // 2
            far = taken(messages, slice(pairs))
            inner = returned(taken(below, slice(1, 2 * pairs, 2)), far)
            messages = _interleaved(inner, messages)
        first = returned(taken(self.levels[0], slice(1)), taken(messages, slice(1)))
        return joined(first, messages)


def _in_pairs(below: Elements) -> Elements:
    """Each two neighbours as one element."""
    even = len(below.shift) // 2 * 2
    pairs = combined(taken(below, slice(0, even, 2)), taken(below, slice(1, even, 2)))
    return joined(pairs, taken(below, slice(even, None))) if even < len(below.shift) else pairs


def _interleaved(evens: T, odds: T) -> T:
    """Messages in turn: the first of `evens`, the first of `odds`, the second of `evens`, …"""
    lengths = len(evens[0]), len(odds[0])
    pairs, count = min(lengths), sum(lengths)
    parts = []
    for even, odd in zip(evens, odds, strict=True):
        part = np.empty((count, *even.shape[1:]))
        part[0 : 2 * pairs : 2], part[1 : 2 * pairs : 2] = even[:pairs], odd[:pairs]
        if count > 2 * pairs:  # a last one without a partner
            part[-1] = even[-1] if len(even) > pairs else odd[-1]
        parts.append(part)
    return type(evens)(*parts)  # type: ignore[call-overload]


def _solved(
    spread: Matrices, precision: Matrices, *sides: Float[np.ndarray, "n d _k"]
) -> list[np.ndarray]:
    """(I + CJ)⁻¹ times each side and, last, times C. That is symmetric up to rounding."""
    inner = inverse(identity_plus(spread @ precision))
    return [*(inner @ side for side in sides), inner @ spread]
