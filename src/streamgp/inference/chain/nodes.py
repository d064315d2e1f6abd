"""The states around several inputs, all together.

Given all data and g = (1, β), states are still a chain: each is T·(the one before it) plus what is
independent of it, so that covariances between far states are products of these T.
"""

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.elements import onward, taken
from streamgp.inference.chain.known import Known
from streamgp.inference.chain.places import Places
from streamgp.inference.chain.seen import Seen
from streamgp.inference.chain.stretch import Pairs


def explained(
    known: Known, seen: Seen, found: Places
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
    """Mean, less the offset, and covariance of the latent parameters of rows, open variance apart.

    Args:
        known: The chain.
        seen: What the rows see.
        found: Where the rows are.
    """
    nodes, weights = Nodes.of(known, found), known.weights
    design, by_g = nodes.seen(seen, found)
    covariance = design @ nodes.covariance @ design.T
    covariance += by_g[:, 1:] @ weights.covariance @ by_g[:, 1:].T
    return by_g @ weights.first, covariance


class Nodes:
    """The states at the ends of some intervals, all together, given g and scaled.

    Attributes:
        mean: N(mean·g, covariance) of all of them, one after the other.
        covariance: See `mean`.
        first: The number of the first state of each interval among them; the second follows it.
    """

    def __init__(self, mean: np.ndarray, covariance: np.ndarray, first: Int[np.ndarray, " m"]):
        self.mean, self.covariance, self.first = mean, covariance, first

    @classmethod
    def of(cls, known: Known, found: Places) -> "Nodes":
        """The states around places, which are in the order of time."""
        pairs, size = known.pairs(found.number, found.which), known.law.size
        follows = _follow_each_other(known, found)
        # An interval that follows another shares a state with it.
        first = np.cumsum(np.concatenate([[0], np.where(follows, 1, 2)]))
        count = int(first[-1]) + 2
        mean = np.zeros((count, size, pairs.mean.shape[2]))
        mean[first], mean[first + 1] = pairs.mean[:, :size], pairs.mean[:, size:]
        covariance = _covariance(known, found, pairs, first, count)
        return cls(mean.reshape(count * size, -1), covariance, first)

    def seen(self, seen: Seen, found: Places) -> tuple[np.ndarray, Float[np.ndarray, "R k"]]:
        """The design of rows on all states, and the mean of their f, less the offset, by g."""
        design = self.spread_out(seen.design, seen.of_latents(found.of_row))
        by_g = design @ self.mean
        by_g[:, 1:] += seen.basis
        return design, by_g

    def spread_out(
        self, design: Float[np.ndarray, "R dd"], interval: Int[np.ndarray, " R"]
    ) -> Float[np.ndarray, "R S"]:
        """A design on the two states of each row's interval as one on all states."""
        whole = np.zeros((len(design), len(self.mean)))
        size = design.shape[1] // 2
        columns = (self.first[interval] * size)[:, None] + np.arange(2 * size)
        np.put_along_axis(whole, columns, design, axis=1)
        return whole


def _follow_each_other(known: Known, found: Places) -> np.ndarray:
    """Whether each interval but the first begins where the one before it ends."""
    links, number, which = known.links, found.number, found.which
    same = (number[1:] == number[:-1]) & (which[1:] == which[:-1] + 1)
    ends = np.array([links[n].segment.count for n in number[:-1]], int) - 1
    crossing = (number[1:] == number[:-1] + 1) & (which[1:] == 0) & (which[:-1] == ends)
    return same | crossing


def _covariance(
    known: Known, found: Places, pairs: Pairs, first: Int[np.ndarray, " m"], count: int
) -> Float[np.ndarray, "S S"]:
    size = known.law.size
    whole = np.zeros((count * size, count * size))

    def rows(node: int) -> slice:
        return slice(node * size, (node + 1) * size)

    through = _Through(known)
    for k, node in enumerate(first):
        spread = pairs.covariance[k]
        if k == 0:
            whole[rows(0), rows(0)] = spread[:size, :size]
        elif node > first[k - 1] + 1:  # a gap: bring what is known across it
            step = through.between(found, k - 1)
            before = slice(node * size)
            whole[rows(node), before] = step @ whole[rows(node - 1), before]
            whole[rows(node), rows(node)] = spread[:size, :size]
        step = through.over(int(found.number[k]), int(found.which[k]))
        before = slice((node + 1) * size)
        whole[rows(node + 1), before] = step @ whole[rows(node), before]
        whole[rows(node + 1), rows(node + 1)] = spread[size:, size:]
    lower = np.tril(whole)
    return lower + np.tril(whole, -1).T


class _Through:
    """T over intervals, given all data."""

    def __init__(self, known: Known):
        self._known = known
        self._of_link: dict[int, np.ndarray] = {}

    def over(self, number: int, which: int) -> Float[np.ndarray, "d d"]:
        """Over one interval."""
        return self._inside(number)[which]

    def between(self, found: Places, k: int) -> Float[np.ndarray, "d d"]:
        """From the end of an interval among the places to the beginning of the next one."""
        number, which = int(found.number[k]), int(found.which[k]) + 1
        last, stop = int(found.number[k + 1]), int(found.which[k + 1])
        total = np.eye(self._known.law.size)
        while number < last:
            for step in self._inside(number)[which:] if which else [self._whole(number)]:
                total = step @ total
            number, which = number + 1, 0
        for step in self._inside(last)[which:stop]:
            total = step @ total
        return total

    def _inside(self, number: int) -> Float[np.ndarray, "n d d"]:
        known = self._known
        if number not in self._of_link:
            link = known.links[number]
            later = link.smoothed(known.mixing, known.after(number))
            stretch = link.stretch(known.mixing)
            self._of_link[number] = onward(stretch.elements, taken(later, slice(1, None)))
        return self._of_link[number]

    def _whole(self, number: int) -> Float[np.ndarray, "d d"]:
        known = self._known
        return onward(known.links[number].whole(known.mixing), known.after(number))[0]
