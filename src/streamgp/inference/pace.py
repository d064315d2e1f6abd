"""Pace: how much an engine takes at a time, and how often it learns."""

from typing import NamedTuple


class Pace(NamedTuple):
    """The numbers that differ between engines. Each learner gives its reasons.

    Attributes:
        rows: How many rows are folded in together. A larger batch comes in parts.
        in_time: Whether these parts are in the order of time, instead of random.
        samples: How many samples are filtered together.
        racing: How many rows tell starts of learning apart.
        comparing: How many evaluations of the bound the present hyperparameters and new ones get
            when they are compared.
        brief: How many an M step gets that goes on from a recent one.
        growth: How many times more data there are at least when hyperparameters are learned again.
    """

    rows: int
    samples: int
    racing: int
    comparing: int
    brief: int
    in_time: bool = False
    growth: float = 1.0
