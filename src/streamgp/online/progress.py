"""Progress: how far a model has come. Everything that an update changes is in here."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.data.schema import Schema
from streamgp.inference.dense.state import DenseState
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.inference.over_time.state import RowState
from streamgp.inference.scoring import Scored
from streamgp.inference.sparse.state import State
from streamgp.numerics.quantile_tracker import QuantileTracker
from streamgp.online.calibration import Calibration
from streamgp.online.doubt import Doubt
from streamgp.online.drift import Watch
from streamgp.online.horizons import Horizons, Tracked, settled
from streamgp.parameters import replaced
from streamgp.registry import storable

_SAME = 1e-12  # relative: values that differ by no more are one value


@storable
@dataclasses.dataclass(frozen=True)
class Progress:
    """The state, and the little that is counted beside it.

    `levels` has the only value that a channel has shown so far, None once there were two.
    `places` has some of the first values of the input columns that have seasons.
    """

    seen: Mapping[str, int]  # observations, by channel
    state: State | DenseState | RowState | None = None
    updates: int = 0
    learned_at: int = 0  # observations when hyperparameters were last learned
    latest: float = -np.inf  # the largest first input
    levels: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    watches: Mapping[str, Watch] = dataclasses.field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = dataclasses.field(default_factory=dict)
    horizons: Mapping[str, Horizons] = dataclasses.field(default_factory=dict)
    schema: Schema = dataclasses.field(default_factory=Schema)  # axes and labels of the data
    doubt: Doubt = Doubt()  # noqa: RUF009 (never changed)
    started_at: int = 0  # observations when learning last began anew
    places: Mapping[int, tuple[float, ...]] = dataclasses.field(default_factory=dict)

    @property
    def total(self) -> int:
        """Observations of all channels."""
        return sum(self.seen.values())

    def after(self, rows: Rows, state: Any, *, updates: int, learned: bool) -> "Progress":
        """With these rows folded in, in so many updates."""
        seen = dict(self.seen)
        for name, own in rows.by_channel():
            seen[name] += int(np.count_nonzero(own))
        return replaced(
            self,
            state=state,
            seen=seen,
            updates=self.updates + updates,
            learned_at=sum(seen.values()) if learned else self.learned_at,
            latest=max(self.latest, float(rows.x[:, 0].max())),
            levels=self.levels_with(rows),
        )

    def having_learned(self, gain: float, *, afresh: bool) -> "Progress":
        """After hyperparameters were learned, which gained so many nats, perhaps beginning anew."""
        started_at = self.total if afresh else self.started_at
        return replaced(self, doubt=self.doubt.settled(gain), started_at=started_at)

    def levels_with(self, rows: Rows) -> dict[str, float | None]:
        """The levels once these rows have been seen."""
        levels = dict(self.levels)
        for name, own in rows.by_channel():
            y = rows.y[own, 0]
            level = levels.get(name, float(y[0]))
            same = level is not None and is_level(level, float(y.min()), float(y.max()))
            levels[name] = level if same else None
        return levels

    def recorded(
        self, rows: Rows, scored: Scored, far: Mapping[str, int], *, one_by_one: bool = False
    ) -> dict[str, Calibration]:
        """The records of where these rows, which come next, fell in what was predicted.

        The first rows of a channel are left out: its scale came from them.
        """
        records = dict(self.calibrations)
        for name, own in rows.by_channel():
            if self.seen[name]:
                record = records.get(name, Calibration())
                last = far.get(name, 0)
                records[name] = record.seen(scored.table[own], last, one_by_one=one_by_one)
        return records

    def horizons_with(
        self, rows: Rows, state: AnyState, learner: AnyLearner, *, one_by_one: bool
    ) -> dict[str, Horizons]:
        """What is known of forecasts once rows have come, with new forecasts from a state.

        Args:
            rows: Those that come next.
            state: The state after them.
            learner: Of such states.
            one_by_one: Whether each row was an update of its own.
        """
        families = [own.likelihood for own in state.plain.channels]
        found = settled(self.horizons, rows, families, self._tracker, one_by_one=one_by_one)
        now = max(self.latest, float(rows.x[:, 0].max()))
        for name, known in found.items():
            number = rows.names.index(name)
            found[name] = known.issued(now, functools.partial(learner.outlook, state, number))
        return found

    def tracked(self) -> dict[str, Tracked]:
        """What each channel's past says of its predictions."""
        return {
            name: Tracked(record.tracked, self.horizons.get(name, Horizons()), self.latest)
            for name, record in self.calibrations.items()
        }

    def _tracker(self, name: str) -> QuantileTracker:
        """The quantiles of a channel's scores; once there are many, without rows that wait."""
        record = self.calibrations.get(name, Calibration())
        return record.tracker if record.rows else record.tracked()


def is_level(level: float, low: float, high: float) -> bool:
    """Whether values between two others are all one value, up to rounding."""
    return max(abs(low - level), abs(high - level)) <= _SAME * abs(level)


class Scores(NamedTuple):
    """Log predictive densities before learning, by channel, and what they say of the stream."""

    rows: dict[str, Float[np.ndarray, " _"]] = {}  # noqa: RUF012 (never changed)
    surprise: dict[str, float] = {}  # noqa: RUF012
    changed: tuple[str, ...] = ()
    outliers: dict[str, int] = {}  # noqa: RUF012


def watched(
    progress: Progress,
    rows: Rows,
    scores: Float[np.ndarray, " N"],
    *,
    one_by_one: bool = False,
    **changes: Any,
) -> tuple[Progress, Scores]:
    """Let each channel's watch see its scores: their mean, or each by itself.

    Other changes of the progress may be made in passing.
    """
    watches, by_channel, surprise, changed = dict(progress.watches), {}, {}, []
    for name, rows_of_channel in rows.by_channel():
        own = scores[rows_of_channel]
        numbers = own.tolist() if one_by_one or len(own) == 1 else [float(np.mean(own))]
        watches[name], surprise[name], is_change = watches.get(name, Watch()).seen(numbers)
        by_channel[name] = own
        if is_change:
            changed.append(name)
    seen = replaced(progress, watches=watches, **changes)
    return seen, Scores(by_channel, surprise, tuple(changed))
