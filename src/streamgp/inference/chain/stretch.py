"""A stretch of a chain between what is known before it and what is known after it."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.elements import (
    Backward,
    Elements,
    Forward,
    Gains,
    Moves,
    PairSites,
    Tree,
    conditioned,
    is_silent,
    known_of,
    of_intervals,
    taken,
)
from streamgp.inference.chain.innovations import before_pairs, gained, met
from streamgp.numerics.batched import solve, turned
from streamgp.numerics.linalg import (
    cholesky_of_identity_plus,
    inverse_of,
    positive_part,
    solve_lower,
    symmetric,
)


class Weights(NamedTuple):
    """q(β), of the whitened weights of all mean functions, and the evidence of all data."""

    mean: Float[np.ndarray, "*K B"]
    covariance: Float[np.ndarray, "*K B B"]
    log_evidence: float  # of several chains an array

    @classmethod
    def of(cls, gains: Gains) -> "Weights":
        """From Γ and ε: I − Γ_ββ is the precision of β.

        What rows say of β is large before it is known how much of it the states explain. Where
        noise is nearly nothing, rounding of that can outweigh what is left.
        """
        gram = gains.gram
        if gram.ndim > 2:  # of several chains
            pairs = zip(gains.gram, np.asarray(gains.evidence).tolist(), strict=True)
            fields = zip(*(cls.of(Gains(*own)) for own in pairs), strict=True)
            return cls._make(map(np.array, fields))
        chol = cholesky_of_identity_plus(-gram[1:, 1:])
        if not np.isfinite(chol).all() and np.isfinite(gram).all():
            chol = cholesky_of_identity_plus(positive_part(-gram[1:, 1:]))
        half = solve_lower(chol, gram[1:, 0])
        log_evidence = gains.evidence + 0.5 * float(gram[0, 0]) + 0.5 * float(half @ half)
        log_evidence -= float(np.log(chol.diagonal()).sum())
        return cls(solve_lower(chol, half, transpose=True), inverse_of(chol), log_evidence)

    @property
    def first(self) -> Float[np.ndarray, " k"]:
        """E[g] of g = (1, β)."""
        return np.concatenate([np.ones((*self.mean.shape[:-1], 1)), self.mean], axis=-1)

    @property
    def second(self) -> Float[np.ndarray, "k k"]:
        """E[ggᵀ]."""
        first = self.first
        found = first[..., :, None] * first[..., None, :]
        found[..., 1:, 1:] += self.covariance
        return found


class Pairs(NamedTuple):
    """The states (a, c) at both ends of intervals, given g = (1, β): N(mean·g, covariance)."""

    mean: Float[np.ndarray, "n *K dd k"]
    covariance: Float[np.ndarray, "n *K dd dd"]


@dataclasses.dataclass(frozen=True, eq=False)
class Stretch:
    """Intervals, what their data say, and what is known from outside.

    Attributes:
        moves: How states move over each interval.
        sites: What the data inside each interval say.
        before: What is known at the first state.
        after: What later data say of the last state.
        filtered: What is known at each state from data before it, if it was computed already.
    """

    moves: Moves
    sites: PairSites
    before: Forward
    after: Backward
    filtered: Forward | None = None

    @functools.cached_property
    def is_quiet(self) -> bool:
        """Whether there are no data, neither inside nor after it."""
        return is_silent(self.after) and not (self.sites.precision.any() or self.sites.linear.any())

    @functools.cached_property
    def elements(self) -> Elements:
        """Its intervals with their data."""
        return of_intervals(self.moves, self.sites)

    @functools.cached_property
    def tree(self) -> Tree:
        """Its intervals, pairs of them, and so on."""
        return Tree.of(self.elements)

    @functools.cached_property
    def forward(self) -> Forward:
        """What is known at each state from data before it."""
        return self.tree.forward(self.before) if self.filtered is None else self.filtered

    @functools.cached_property
    def backward(self) -> Backward:
        """What is said of each state by data after it."""
        if self.is_quiet:
            count = len(self.moves.noise) + 1
            return Backward(*(np.zeros((count, *part.shape[1:])) for part in self.after))
        return self.tree.backward(self.after)

    @functools.cached_property
    def gains(self) -> Gains:
        """What its own data say of g, and what is added by meeting the data after it."""
        if self.is_quiet:
            _, *chains, _, columns = self.after.pull.shape
            return Gains(np.zeros((*chains, columns, columns)), 0.0)
        before = taken(self.forward, slice(-1))
        own = gained(before, self.moves, self.sites)
        if is_silent(self.after):
            return own
        return own + met(taken(self.forward, slice(-1, None)), self.after)

    def pairs(self, which: Int[np.ndarray, " m"] | slice = slice(None)) -> Pairs:
        """The states at both ends of some intervals, given all data."""
        before = taken(taken(self.forward, slice(-1)), which)
        if self.is_quiet:
            return Pairs(*before_pairs(before, taken(self.moves, which)))
        here = taken(taken(self.backward, slice(-1)), which)
        after = taken(taken(self.backward, slice(1, None)), which)
        return _smoothed(before, here, taken(self.elements, which), after)


def _smoothed(before: Forward, here: Backward, elements: Elements, after: Backward) -> Pairs:
    """Both ends of intervals, from what earlier and later data say of each end.

    Given all data, the far state is T·(near state) plus what is independent of it.
    """
    near = known_of(before, here)
    step, shift, spread = conditioned(elements, after)
    size, mean = step.shape[-1], np.concatenate([near.mean, step @ near.mean + shift], axis=-2)
    covariance = np.empty((*step.shape[:-2], 2 * size, 2 * size))
    across = step @ near.spread
    covariance[..., :size, :size] = near.spread
    covariance[..., size:, :size], covariance[..., :size, size:] = across, turned(across)
    covariance[..., size:, size:] = symmetric(across @ turned(step)) + spread
    return Pairs(mean, covariance)


def paired(before: Forward, moves: Moves, sites: PairSites, after: Backward) -> Pairs:
    """Both ends of intervals, from what is known before and after each of them."""
    (mean, prior), size = before_pairs(before, moves), moves.transition.shape[-1]
    precision, linear = sites.precision.copy(), sites.linear.copy()
    precision[:, size:, size:] += after.precision
    linear[:, size:] += after.pull
    mean = mean + prior @ linear
    matrix = prior @ precision
    diagonal = np.arange(2 * size)
    matrix[:, diagonal, diagonal] += 1.0
    found = solve(matrix, np.concatenate([mean, prior], axis=2))
    columns = mean.shape[2]
    covariance = found[:, :, columns:]
    return Pairs(found[:, :, :columns], 0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
