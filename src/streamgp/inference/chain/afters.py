"""What data after each link of a chain say of its last state, kept as far as somebody asked."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamgp.inference.chain.elements import Backward, T, returned, silent
from streamgp.inference.chain.link import Link
from streamgp.inference.chain.mixing import Mixing
from streamgp.inference.chain.segments import Segment

_SAME = 1e-13  # messages that differ by no more, in units of the prior, are one


class _After(NamedTuple):
    """A message, and what it follows from: the next link's data, and the message after that."""

    message: Backward
    segment: Segment | None
    source: Backward | None


@dataclasses.dataclass(eq=False)
class Afters:
    """The message after each link of one chain. Each follows from the one after it.

    Some may be from before the last data came. They are computed again only as far back as they
    change.

    Attributes:
        held: The messages, as far as somebody asked.
        fresh: From this link on, messages are as they should be.
        linked: Older messages that follow from one another, from this link on …
        until: … and before this one. If the last of them is as it should be, all of them are.
    """

    held: list[_After | None]
    fresh: int
    linked: int
    until: int

    @classmethod
    def none(cls, count: int) -> "Afters":
        """Nobody has asked yet."""
        return cls([None] * count, count, count, count)

    def message(self, number: int, links: Sequence[Link], mixing: Mixing) -> Backward:
        """The message after a link."""
        while self.fresh > number:
            self._refresh(self.fresh - 1, links, mixing)
        found = self.held[number]
        assert found is not None
        return found.message

    def _refresh(self, index: int, links: Sequence[Link], mixing: Mixing) -> None:
        """Bring one message up to date, those of all later links being so."""
        old, segment, source = self.held[index], None, None
        if index + 1 < len(links):
            segment, following = links[index + 1].segment, self.held[index + 1]
            assert following is not None
            source = following.message
        is_as_it_was = old is not None and old.segment is segment and old.source is source
        if not is_as_it_was:
            if source is None:
                message = silent(mixing.law.size, mixing.columns)
            else:
                message = returned(links[index + 1].whole(mixing), source)
            if old is not None and is_same(old.message, message):
                message, is_as_it_was = old.message, True
            self.held[index] = _After(message, segment, source)
        within = is_as_it_was and self.linked <= index < self.until
        self.fresh = self.linked if within else index

    def replaced(self, first: int, stop: int, count: int) -> "Afters":
        """With so many new links in the place of those from `first` until `stop`.

        What is said after the last of them is as it was.
        """
        held = [*self.held[:first], *[None] * (count - 1), *self.held[stop - 1 :]]
        fresh = max(self.fresh, stop - 1) + first + count - stop
        if self.fresh < first:
            return Afters(held, fresh, self.fresh, first)
        return Afters(held, fresh, self.linked, min(self.until, first))


def is_same(one: T, other: T) -> bool:
    """Whether two messages agree, up to rounding."""
    return all(
        bool(np.all(np.abs(a - b) <= _SAME * (1.0 + np.abs(a))))
        for a, b in zip(one, other, strict=True)
    )
