"""FleetReport: what an update did to each key and channel."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.frames import make_frame
from streamgp.online.calibration import COVERED, Calibration


class Line(NamedTuple):
    """What came of one channel of one key.

    Attributes:
        key: Of the model.
        channel: The name of the channel.
        observations: How many came.
        log_predictive: Their mean log predictive density before they were learned.
        surprise: How far that is below its usual, in standard deviations.
        changed: Whether scores have stayed so low that the channel must have changed.
        outliers: How many lay far outside what was predicted.
        latest: The largest first input so far.
        record: Where observations fell in what was predicted of them; None of a first batch.
    """

    key: Hashable
    channel: str
    observations: int
    log_predictive: float
    surprise: float
    changed: bool
    outliers: int
    latest: float
    record: Calibration | None


@dataclasses.dataclass(frozen=True)
class FleetReport:
    """What one `Fleet.update` did.

    Attributes:
        keys: The keys that were updated.
        learned: Those of them whose hyperparameters were learned.
        errors: What went wrong, by key. Those models are as they were.
        dropped: What was left out of each channel, as text, by key and channel.
        latest: The largest first input of the whole fleet.
        seconds: The time that the update took.
    """

    keys: Sequence[Hashable]
    learned: Sequence[Hashable]
    errors: Mapping[Hashable, Exception]
    dropped: Mapping[Hashable, Mapping[str, str]]
    latest: float
    seconds: float
    _lines: Sequence[Line] = dataclasses.field(repr=False)

    @property
    def changed(self) -> list[tuple[Hashable, str]]:
        """The keys and channels that must have changed."""
        return [(line.key, line.channel) for line in self._lines if line.changed]

    def __str__(self) -> str:
        parts = [f"{len(self.keys):,} keys", f"{self._observations:,} observations"]
        if self.learned:
            parts.append(f"{len(self.learned):,} learned hyperparameters")
        if self.changed:
            parts.append(f"{len(self.changed):,} changed")
        if self.errors:
            key, error = next(iter(self.errors.items()))
            parts.append(f"{len(self.errors):,} failed, first {key!r}: {error}")
        return f"{'; '.join(parts)} ({self.seconds:.2f} s)"

    @property
    def _observations(self) -> int:
        return sum(line.observations for line in self._lines)

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """A table with one row per key and channel that came, and one per key that failed.

        Args:
            backend: "pandas" or "polars".

        Returns:
            The columns `key`, `channel`, `observations`, `log_predictive`, `surprise`, `changed`,
            `outliers`, `silence` (how far the channel's latest input lies behind the fleet's; days,
            if inputs are times), `nlpd` and `coverage_50`, `coverage_80`, `coverage_95` (moving
            averages over about the last 500 observations), and `error`, which is text.
        """
        failed = [Line(key, "", 0, np.nan, np.nan, False, 0, np.nan, None) for key in self.errors]
        lines = [*self._lines, *failed]
        errors = [""] * len(self._lines) + [str(error) for error in self.errors.values()]
        columns = table(lines, self.latest)
        return make_frame({**columns, "error": np.array(errors, object)}, backend)


def table(lines: Sequence[Line], latest: float) -> dict[str, np.ndarray]:
    """Lines as columns."""
    keys = np.empty(len(lines), object)
    keys[:] = [line.key for line in lines]
    columns = {"key": keys, "channel": np.array([line.channel for line in lines], object)}
    for name, kind in _NUMBERS.items():
        columns[name] = np.array([getattr(line, name) for line in lines], kind)
    columns["silence"] = latest - np.array([line.latest for line in lines], float)
    return columns | _recorded([line.record for line in lines])


_NUMBERS = {
    "observations": int,
    "log_predictive": float,
    "surprise": float,
    "changed": bool,
    "outliers": int,
}


def _recorded(records: Sequence[Calibration | None]) -> dict[str, np.ndarray]:
    """Moving averages of scores; NaN where there are none."""
    found = np.full((len(records), 1 + len(COVERED)), np.nan)
    for row, record in zip(found, records, strict=True):
        settled = None if record is None else record.settled
        if settled is not None and settled.nlpd.weight:
            row[0] = settled.nlpd.value
        if settled is not None and settled.coverage[0].weight:
            row[1:] = [share.value for share in settled.coverage]
    names = ["nlpd", *(f"coverage_{round(100 * level)}" for level in COVERED)]
    return dict(zip(names, found.T, strict=True))
