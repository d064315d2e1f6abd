"""Outliers: rows far outside what was predicted, and what becomes of them.

What was predicted of a row decides. It is far out if its normal score is beyond the limit of its
channel. Several such rows one after the other are a change of the channel, and no outliers. They
are learned, or the model would never follow.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool

from streamgp.data.batch import Rows
from streamgp.errors import ConfigurationError, problem
from streamgp.inference.scoring import Scored
from streamgp.online.calibration import FAR, Calibration
from streamgp.online.progress import Progress

SEVERAL = 5  # far rows in a row that are a change
WARM_UP = 30  # rows of a channel before anything in it is called an outlier
_FEW = 8  # first rows of a channel from which they are compared with each other
_APART = 1e3  # interquartile ranges from the median

Rule = Literal["keep", "skip", "downweight"]


class Verdict(NamedTuple):
    """Which rows are outliers.

    Attributes:
        is_outlier: Of each row. Rows of a change are none.
        in_a_row: How many rows were far out up to the last, by channel; none if not named.
        changed: The channels with so many of them that they have changed.
    """

    is_outlier: Bool[np.ndarray, " N"]
    in_a_row: dict[str, int]
    changed: tuple[str, ...]


def check_rule(rule: str) -> None:
    """Raise where that is no rule for outliers."""
    if rule not in get_args(Rule):
        raise ConfigurationError(
            problem('outliers "keep", "skip" or "downweight"', repr(rule), "Choose one of them.")
        )


def apart(progress: Progress, rows: Rows) -> Bool[np.ndarray, " N"]:
    """Which rows of a channel's first batch lie beyond all reason from the others.

    Nothing was predicted of them. A single one would set the scale of the channel.
    """
    found = np.zeros(rows.size, bool)
    for name, own in rows.by_channel():
        value = rows.y[own, 0]
        if not progress.seen[name] and len(value) >= _FEW:
            low, middle, high = np.quantile(value, (0.25, 0.5, 0.75))
            found[own] = (np.abs(value - middle) > _APART * (high - low)) & (high > low)
    return found


def judged(progress: Progress, rows: Rows, scored: Scored, *, one_by_one: bool = False) -> Verdict:
    """Say which rows are outliers.

    Args:
        progress: Before the rows.
        rows: In the order in which they came.
        scored: Their scores.
        one_by_one: Whether each row is judged without those after it. Of rows that came together, a
            change is seen as a whole.
    """
    is_outlier = np.abs(scored.score) > FAR
    in_a_row: dict[str, int] = {}
    changed = []
    first = apart(progress, rows) if 0 in progress.seen.values() else np.zeros(rows.size, bool)
    if is_outlier.any() or first.any():
        for name, own in rows.by_channel():
            known = progress.calibrations.get(name, Calibration())
            far = np.abs(scored.score[own]) > known.limit
            if progress.seen[name] < WARM_UP:
                far[:] = False
            counts = _counts(far, known.far)
            lengths = counts if one_by_one else _lengths(counts)
            is_outlier[own] = (far & (lengths < SEVERAL)) | first[own]
            in_a_row[name] = int(counts[-1])
            if np.any(far & (lengths >= SEVERAL)):
                changed.append(name)
    return Verdict(is_outlier, in_a_row, tuple(changed))


def taken(rule: Rule, rows: Rows, scored: Scored, verdict: Verdict) -> Rows:
    """The rows that are learned, outliers among them as moderate values.

    A moderate value moves the mean as the outlier would if its noise were so large that it lay
    three deviations out. The further out, the less it moves. Outliers of families without such a
    value are left out.
    """
    if rule == "keep" or not verdict.is_outlier.any():
        return rows
    kept = ~verdict.is_outlier
    if rule == "skip":
        return rows.take(kept)
    softened = verdict.is_outlier & np.isfinite(scored.moderate)
    y = rows.y.copy()
    y[softened, 0] = scored.moderate[softened]
    return rows._replace(y=y).take(kept | softened)


def _counts(far: Bool[np.ndarray, " n"], before: int) -> np.ndarray:
    """How many rows have been far out without a break, up to each row."""
    place = np.arange(1, len(far) + 1)
    last_near = np.maximum.accumulate(np.where(far, 0, place))
    return np.where(last_near == 0, before + place, place - last_near)


def _lengths(counts: np.ndarray) -> np.ndarray:
    """How long the stretch of far rows that each row belongs to becomes."""
    lengths = counts.copy()
    for i in range(len(counts) - 2, -1, -1):
        if counts[i] and counts[i + 1] > counts[i]:
            lengths[i] = lengths[i + 1]
    return lengths
