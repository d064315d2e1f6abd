"""Known: what data say of the states of a chain, kept so that new data cost no more than needed.

A chain is a row of links, each of them a segment with what is known at its states from data before
them. New data at the end change the last link only. What is said of a link by data after it is
computed when somebody asks, and again only as far back as it has changed.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.inference.chain.afters import Afters, is_same
from streamgp.inference.chain.elements import (
    Backward,
    Forward,
    Gains,
    joined,
    reached,
    silent,
    taken,
)
from streamgp.inference.chain.law import Law
from streamgp.inference.chain.link import Link
from streamgp.inference.chain.mixing import Mixing
from streamgp.inference.chain.segments import SIZE, Segment, cut
from streamgp.inference.chain.segments import joined as joined_segments
from streamgp.inference.chain.stretch import Pairs, Stretch, Weights, paired

_TOGETHER = 8192  # intervals that a pass over the whole chain takes together


class Window(NamedTuple):
    """Some links in a row as one, and what data after them say of the last state."""

    first: int  # the number of its first link
    stop: int
    segment: Segment
    forward: Forward
    after: Backward


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """A chain under some hyperparameters.

    Attributes:
        mixing: The hyperparameters.
        links: The chain, in the order of time.
        gains: What all data say of g = (1, β).
        afters: What data after each link say, as far as that was asked for.
    """

    mixing: Mixing
    links: tuple[Link, ...]
    gains: Gains
    afters: Afters

    @classmethod
    def of(cls, mixing: Mixing, segments: Sequence[Segment]) -> "Known":
        """From the segments alone: a pass over the whole chain."""
        law = mixing.law
        links: list[Link] = []
        columns = mixing.columns
        gains = Gains(np.zeros((columns, columns)), 0.0)
        before = law.start(segments[0].times[0], columns) if segments else None
        if before is not None and not any(segment.has_data for segment in segments):
            return cls(
                mixing, _blank_links(law, before, segments), gains, Afters.none(len(segments))
            )
        for group in _groups(segments):
            assert before is not None
            whole = joined_segments(group)
            stretch = Stretch(
                law.moves(whole.times), mixing.sites(whole.sums), before, silent(law.size, columns)
            )
            begin = 0
            for segment in group:
                inside = slice(begin, begin + segment.count + 1)
                links.append(Link(segment, taken(stretch.forward, inside)))
                begin += segment.count
            gains, before = gains + stretch.gains, links[-1].last
        return cls(mixing, tuple(links), gains, Afters.none(len(links)))

    @functools.cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of its links."""
        return tuple(link.segment for link in self.links)

    @functools.cached_property
    def count(self) -> int:
        """How many intervals there are."""
        return sum(segment.count for segment in self.segments)

    @property
    def law(self) -> Law:
        """How states move."""
        return self.mixing.law

    @functools.cached_property
    def weights(self) -> Weights:
        """q(β), and the evidence of all data."""
        return Weights.of(self.gains)

    @functools.cached_property
    def ends(self) -> Float[np.ndarray, " L"]:
        """Where each link ends."""
        return np.array([link.segment.times[-1] for link in self.links])

    def holding(self, x: Float[np.ndarray, " N"]) -> np.ndarray:
        """The number of the link that each x lies in; of those beyond the ends, the nearest."""
        return np.minimum(np.searchsorted(self.ends, x, side="left"), len(self.links) - 1)

    # -- data after ------------------------------------------------------------------------------

    def after(self, number: int) -> Backward:
        """What data after a link say of its last state."""
        return self.afters.message(number, self.links, self.mixing)

    @functools.cached_property
    def stiffness(self) -> Float[np.ndarray, "C Q Q"]:
        """Σ P E[u uᵀ] over all rows, of each pair of latent parameters, open variance apart.

        A link about which later data have said nothing new is not computed again. What it says is
        then from when the weights of mean functions were known a little less well.
        """
        reading = self.mixing.reading
        latents, pairs = self.law.latents, len(reading.outputs.left)
        total = np.zeros((pairs, latents, latents))
        for number in range(len(self.links) - 1, -1, -1):
            link, after = self.links[number], self.after(number)
            total += link.stiffness(self.mixing, after, self.weights)
        return total

    # -- some of it ------------------------------------------------------------------------------

    def window(self, low: float, high: float) -> Window:
        """The links that hold the stretch of time between two times."""
        first = last = len(self.links) - 1
        if not low > self.links[-1].segment.times[0]:  # else it is the last link
            first, last = map(int, self.holding(np.array([low, high])))
        links = self.links[first : last + 1]
        forward = joined(
            links[0].forward, *(taken(link.forward, slice(1, None)) for link in links[1:])
        )
        segment = joined_segments([link.segment for link in links])
        return Window(first, last + 1, segment, forward, self.after(last))

    def pairs(self, number: Int[np.ndarray, " m"], which: Int[np.ndarray, " m"]) -> Pairs:
        """Both ends of some intervals, given all data.

        Args:
            number: The link of each interval, in order.
            which: The interval in its link.
        """
        before, sums, after, gaps = [], [], [], []
        for index, own in _runs(number, which):
            link = self.links[index]
            before.append(taken(link.forward, own))
            after.append(taken(link.smoothed(self.mixing, self.after(index)), own + 1))
            sums.append(taken(link.segment.sums, own))
            gaps.append(link.segment.times[own + 1] - link.segment.times[own])
        moves, sites = self.law.moves_over(np.concatenate(gaps)), self.mixing.sites(joined(*sums))
        return paired(joined(*before), moves, sites, joined(*after))

    def replaced(
        self, window: Window, segment: Segment, forward: Forward, change: Gains | None = None
    ) -> "Known":
        """The chain with other intervals in the place of a window's.

        Args:
            window: What is replaced.
            segment: What comes instead.
            forward: What is known at its states from data before them.
            change: How the gains of the window changed; None if its data did not.
        """
        links: list[Link] = []
        begin, parts = 0, cut(segment)
        for part in parts:
            links.append(Link(part, taken(forward, slice(begin, begin + part.count + 1))))
            begin += part.count
        before, after = self.links[: window.first], self.links[window.stop :]
        after = self._onward(links[-1].last, after)
        every = (*before, *links, *after)
        afters = self.afters.replaced(window.first, window.stop, len(links))
        gains = self.gains if change is None else self.gains + change
        found = Known(self.mixing, every, gains, afters)
        segments = (*self.segments[: window.first], *parts, *self.segments[window.stop :])
        # These are passed on, so that an update takes no longer in a long chain.
        vars(found).update(
            segments=segments, count=self.count + segment.count - window.segment.count
        )
        if change is None:
            vars(found).update(weights=self.weights)
        return found

    def _onward(self, message: Forward, links: tuple[Link, ...]) -> tuple[Link, ...]:
        """The links after a change, with what is known before them brought up to date."""
        found: list[Link] = []
        for number, link in enumerate(links):
            if is_same(taken(link.forward, slice(1)), message):
                return (*found, *links[number:])
            stretch = dataclasses.replace(link.stretch(self.mixing), before=message)
            found.append(Link(link.segment, stretch.forward, link.whole(self.mixing)))
            message = found[-1].last
        return tuple(found)


def _blank_links(law: Law, start: Forward, segments: Sequence[Segment]) -> tuple[Link, ...]:
    """Segments without data: each state is reached from the first in one move."""
    first = segments[0].times[0]
    return tuple(
        Link(segment, reached(start, law.moves_over(segment.times - first))) for segment in segments
    )


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Segments in groups that are passed over together."""
    size = max(_TOGETHER // SIZE, 1)
    return [list(segments[i : i + size]) for i in range(0, len(segments), size)]


def _runs(
    number: Int[np.ndarray, " m"], which: Int[np.ndarray, " m"]
) -> Iterator[tuple[int, Int[np.ndarray, " _"]]]:
    """Each link, and which of its intervals."""
    begin = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
    for index, own in zip(number[begin], np.split(which, begin[1:]), strict=True):
        yield int(index), own
