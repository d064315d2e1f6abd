"""Where a model is drawn: at inputs so close to each other that no wave is missed."""

import math

import numpy as np
from jaxtyping import Float

ALONG = 400  # the fewest points of a line: about one for each dot on a screen
PER_WAVE = 8  # straight lines between so many points miss less than 8% of a wave's height
MOST = 20_000  # points of a line, which take about a second: a year of days, every half hour
ACROSS = 80  # the fewest points of each side of a map
MOST_ACROSS = 240  # of each side of a map, which then has as many points as three of such lines
_GOLDEN = 0.618034  # its multiples are spread over a step without a pattern


def shares(waves: float, least: int = ALONG, most: int = MOST) -> Float[np.ndarray, " N"]:
    """Points from 0 to 1 that show so many waves.

    They are evenly spaced, unless `most` are too few for the waves. Even steps would then show slow
    waves that are not there, so each point lies somewhere else within its step.

    Args:
        waves: How many waves there are from 0 to 1.
        least: The fewest points.
        most: The most points.
    """
    wanted = max(math.ceil(PER_WAVE * waves) + 1, least)
    count = min(wanted, most)
    even = np.linspace(0, 1, count)
    if wanted <= most:
        return even
    moved = np.arange(count) * _GOLDEN % 1 - 0.5
    moved[[0, -1]] = 0
    return even + moved / (count - 1)
