"""Summaries of what came, of many keys at once, for their counts and watches."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp.fleet.plain import Plain
from streamgp.inference.chain.state import ChainState
from streamgp.inference.scoring import Scored
from streamgp.online.beginning import kept
from streamgp.online.calibration import FAR, Calibration
from streamgp.online.drift import Watch
from streamgp.online.progress import Progress, Scores, is_level


class Summaries(NamedTuple):
    """What is counted of the rows of each key, as lists of plain numbers.

    Attributes:
        log_predictive: The mean log predictive density.
        farthest: The largest normal score.
        latest: The largest input.
        low: The smallest value.
        high: The largest value.
    """

    log_predictive: list[float]
    farthest: list[float]
    latest: list[float]
    low: list[float]
    high: list[float]

    @classmethod
    def of(
        cls,
        updates: Sequence[Plain],
        ends: Int[np.ndarray, " ends"],
        table: Float[np.ndarray, "R 6"],
    ) -> "Summaries":
        """Of the rows of each key, which follow one another."""
        begin, count = ends[:-1], np.diff(ends)
        x = np.concatenate([update.rows.x[:, 0] for update in updates])
        y = np.concatenate([update.rows.y[:, 0] for update in updates])
        return cls(
            (np.add.reduceat(table[:, 0], begin) / count).tolist(),
            np.maximum.reduceat(np.abs(table[:, 3]), begin).tolist(),
            np.maximum.reduceat(x, begin).tolist(),
            np.minimum.reduceat(y, begin).tolist(),
            np.maximum.reduceat(y, begin).tolist(),
        )

    def seen(
        self, k: int, update: Plain, after: ChainState, scored: Scored
    ) -> tuple[Progress, Scores]:
        """The progress of a key once its rows have come, as `Updater.seen` has it.

        That says the same in general. This is for rows of one channel that are not far out.
        """
        progress, names = update.progress, update.rows.names
        if len(names) > 1 or not self.farthest[k] <= FAR:
            return update.updater.seen(progress, after, update.rows, scored, learned=False)
        (name,), count = names, update.rows.size
        own = progress.watches.get(name, Watch())
        watch, surprise, changed = own.seen([self.log_predictive[k]])
        record = progress.calibrations.get(name, Calibration()).seen(scored.table, 0)
        level = progress.levels.get(name, update.rows.y.item(0))
        same = level is not None and is_level(level, self.low[k], self.high[k])
        now = dataclasses.replace(
            progress,
            state=after,
            seen={name: progress.seen[name] + count},
            updates=progress.updates + 1,
            latest=max(progress.latest, self.latest[k]),
            levels={name: level if same else None},
            beginning=kept(progress.beginning, progress.seen[name], update.rows, learned=False),
            watches={name: watch},
            calibrations={name: record},
        )
        rows = {name: scored.log_predictive}
        return now, Scores(rows, {name: surprise}, (name,) * changed, {name: 0})
