"""What a comparison is: races between contenders, and what they are to show."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamgp_lab.races.contender import Entry
from streamgp_lab.races.problem import Problem
from streamgp_lab.races.race import Result

Results = dict[str, list[Result]]  # by contender, one a repeat

OURS = "streamgp"


class Claim(NamedTuple):
    """A sentence, what was measured, and whether it holds."""

    sentence: str
    measured: str
    holds: bool | None  # None where one of them has no figure


def at_least(wanted: float, measured: float, sentence: str) -> Claim:
    """That something is so many times as fast."""
    sentence = f"at least {wanted:,g}× as fast {sentence}"
    holds = None if np.isnan(measured) else measured >= wanted
    return Claim(sentence, f"{measured:,.1f}×", holds)


def no_worse(what: str, ours: float, theirs: float, *, by: float = 0.0) -> Claim:
    """That a score of ours is at most so much above another."""
    sentence = what if not by else f"{what} (by at most {by:.2g})"
    holds = None if np.isnan(theirs) else bool(ours <= theirs + by)
    return Claim(sentence, f"{ours:.4f} to {theirs:.4f}", holds)


@dataclass(frozen=True)
class Race:
    """A stream, who takes part in it, and what is claimed of the outcome."""

    problem: Problem
    entries: list[Entry]
    claims: Callable[[Results], list[Claim]] = lambda results: []
    once: bool = False  # too long to be repeated


@dataclass(frozen=True)
class Comparison:
    """Races that belong together; `share` of 1 is all of their data."""

    name: str
    about: str
    races: Callable[[float], list[Race]]
