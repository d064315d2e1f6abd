"""`streamgp fleet run`: stream a table of many keys into one model per key.

A store has the models, the number of rows that were taken and, of a file that is followed, the
place. One transaction replaces what has changed of all of them, so that a run may be stopped at any
moment and continued, as `streamgp run` may.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from rich.console import Console

import streamgp as sgp
from streamgp.cli.cells import Reading
from streamgp.cli.feeds import Learned, Source, feed, left_out
from streamgp.cli.follow import Batch
from streamgp.cli.left_out import LeftOut
from streamgp.cli.options import shown
from streamgp.cli.running import bar, interruptions
from streamgp.configuration import Config
from streamgp.errors import ConfigurationError, problem
from streamgp.fleet.report import FleetReport
from streamgp.store import Store

Show = Callable[[int, FleetReport | None], None]

_ERRORS = 20  # of keys that are shown
RUN = "streamgp fleet run"  # the source under which a store keeps how far a run has come


class Run:
    """A fleet, and how far it has come with its table."""

    def __init__(self, config: Config, where: str, key: str, live: int):
        self.config, self.where, self.key, self.live = config, shown(where), key, live
        store = Store(where)
        self.meaning = {**config.meaning, "key": key}
        book = store.offset(RUN)
        try:
            self._check_same_configuration(store, book)
            model = config.build()
            self.fleet = sgp.Fleet(model, store=store, live=live)
        except BaseException:
            store.close()
            raise
        self.rows: int = 0 if book is None else book["rows"]
        self.place: Any = None if book is None else book["place"]
        kinds = {} if book is None else book["kinds"]
        self.reading = Reading(config.data, model.likelihoods, kinds, required=[key])
        self.left_out: dict[str, int] = {} if book is None else book["left_out"]

    def _check_same_configuration(self, store: Store, book: dict[str, Any] | None) -> None:
        if book is None and not store.keys():
            return
        if book is None or book["config"] != self.meaning:
            raise ConfigurationError(
                problem(
                    f"the configuration and the key that {self.where} was made with",
                    "a store that `streamgp fleet run` has not made" if book is None else "others",
                    "Use those, or name another store with `--store`.",
                )
            )

    def learn(
        self, batches: Iterator[Batch], left_out: LeftOut, stop: list[int], show: Show
    ) -> bool:
        """Learn some batches, and store what they change together.

        A transaction ends after the time between snapshots, when it has changed as many models as
        stay in memory, when the run is to stop, and at the end of the table.

        Returns:
            Whether there may be more.

        Raises:
            DataError: If a row cannot be used, and such rows are not left out.
        """
        before = self.rows, self.place
        changed: set[Hashable] = set()
        begin = time.monotonic()
        with self.fleet.transaction() as change:
            for piece, self.place in batches:
                if piece is not None:
                    frame, bad = self.reading.read(piece)
                    left_out.take(bad)
                    report = self._update(frame) if len(frame) else None
                    self.rows += piece.size
                    changed.update([] if report is None else report.keys)
                    show(piece.size, report)
                late = time.monotonic() - begin >= self.config.stream.snapshot
                if stop or late or len(changed) >= self.live:
                    is_over = False
                    break
            else:
                is_over = True
            if (self.rows, self.place) != before:
                kept = {"kinds": self.reading.kinds, "left_out": left_out.counts}
                book = {"rows": self.rows, "place": self.place, "config": self.meaning}
                change.set_offset(RUN, {**book, **kept})
        return not is_over

    def _update(self, frame: Any) -> FleetReport:
        data = self.config.data
        return self.fleet.update(
            frame, key=self.key, inputs=data.inputs, channel=data.channel, value=data.value
        )


def run(config: Config, source: Source, where: str, *, key: str, live: int) -> bool:
    """Stream a table of many keys into a fleet.

    Args:
        config: What the models are and how their data come.
        source: The table.
        where: The store: the path of a file, or a URL.
        key: The column of keys.
        live: The number of models that stay in memory.

    Returns:
        Whether the table was read to its end. If not, the run was interrupted.

    Raises:
        ConfigurationError: If the store was made with another configuration.
        DataError: If a row cannot be used, and such rows are not left out.
    """
    if config.stream.samples:
        raise ConfigurationError(
            problem("batches", "`samples = true`", "Fleets learn batches: leave it out.")
        )
    console = Console(stderr=True)
    running = Run(config, where, key, live)
    try:
        out = left_out(source, config, running.left_out, console)
        batches = feed(source, config, Learned(running.where, running.rows, running.place), console)
        with interruptions() as interrupted, bar(console, running.rows) as line:
            show = _Shown(console, line)
            while running.learn(batches, out, interrupted, show) and not interrupted:
                pass
        keys = len(running.fleet)
        rows = running.rows - out.count
        said = f"{rows:,} rows of {keys:,} keys are learned and saved in {running.where}."
        if out.count:
            said = f"{said} {out.summary}"
        if interrupted:
            said = f"Interrupted. {said} The same command continues from there."
        console.print(said, soft_wrap=True, markup=False)
    finally:
        running.fleet.close()
    return not interrupted


class _Shown:
    """Shows updates on a line, and the first errors of keys above it."""

    def __init__(self, console: Console, line: Callable[[int, str], None]):
        self._console, self._line = console, line
        self._errors = 0

    def __call__(self, rows: int, report: FleetReport | None) -> None:
        if report is None:  # all rows of the batch were left out
            self._line(rows, "")
            return
        for name, error in report.errors.items():
            self._errors += 1
            if self._errors <= _ERRORS:
                self._console.print(f"Rows of {name!r} are left out: {error}", soft_wrap=True)
        left_out = f", {self._errors:,} batches of keys left out" if self._errors else ""
        self._line(rows, f"{len(report.keys):,} keys in {report.seconds:.2f} s{left_out}")
