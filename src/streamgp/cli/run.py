"""`streamgp run`: stream a table into a model. A run may be stopped at any moment and continued.

A snapshot is one file. It holds the model, the number of rows that were taken and the size that the
file of predictions had at that time. A run that finds a snapshot continues from it.

- From a file, it leaves out the rows that were learned. Batches begin where they would have begun,
  so that the model ends as if the run had never been stopped.
- A file that is followed is continued after the place that the snapshot has, even if the file was
  rotated since. Rows wait there until their batch is complete.
- A feed that a broker has is continued after the place that the snapshot has, too.
- From standard input, it learns every row. Only a caller who sends the same rows again asks to
  leave out those that were learned.
- It cuts off the predictions that were written after the snapshot, and writes them again.
"""

import time
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

import streamgp as sgp
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.cli.cells import Reading
from streamgp.cli.feeds import Learned, Source, feed, left_out
from streamgp.cli.prequential import Predictions, as_observations, predicted, scored
from streamgp.cli.running import bar, interruptions
from streamgp.configuration import Config
from streamgp.errors import ConfigurationError, problem
from streamgp.online.report import UpdateReport

_HISTORY = 256  # the largest number of scores that a snapshot keeps


class Run:
    """A model, the number of rows it has learned, and the files that both are saved in."""

    def __init__(self, config: Config, path: Path, out: Path | None, *, resume: bool):
        self.config, self.path = config, path
        self.model = sgp.load(path) if resume and path.exists() else config.build()
        self.book = Bookkeeping.of(self.model)
        if resume and path.exists():
            self._check_same_configuration()
        self.reading = Reading(
            config.data, self.model.likelihoods, self.book.kinds, labels=self._labels
        )
        self.predictions = None if out is None else Predictions(out)
        if self.predictions is not None:
            self.predictions.begin(self.book.predictions)

    @property
    def rows(self) -> int:
        """How many rows were learned or left out, in this run and before it."""
        return self.book.rows

    def _labels(self, channel: str) -> tuple[Any, ...]:
        """The labels of a channel's classes so far."""
        return self.model._version.progress.schema.labels.get(channel, ())

    def _check_same_configuration(self) -> None:
        if self.book.config == self.config.meaning:
            return
        made = "another one" if self.book.config else "a model that `streamgp run` has not made"
        raise ConfigurationError(
            problem(
                f"the configuration that {self.path} was made with",
                made,
                "Use that configuration, name another file with `--model`, or start a new model "
                "with `--restart`.",
            )
        )

    def take(self, frame: pd.DataFrame) -> UpdateReport:
        """Predict the rows, then learn them."""
        data = self.config.data
        made = None
        if self.predictions is not None:
            made = predicted(self.model, as_observations(frame, data), data.columns)
        learn = self.model.update_many if self.config.stream.samples else self.model.update
        report = learn(frame, inputs=data.inputs, channel=data.channel, value=data.value)
        if self.predictions is not None and made is not None and len(made):
            self.predictions.append(scored(made, report))
        self.book.rows += len(frame)
        self._remember(report)
        return report

    def _remember(self, report: UpdateReport) -> None:
        """Keep the scores. When there are too many, keep every second one."""
        scores = {name: float(score) for name, score in report.log_predictive.items()}
        self.book.history.append({"rows": self.rows, "log_predictive": scores})
        if len(self.book.history) > _HISTORY:
            self.book.history = self.book.history[1::2]

    def save(self) -> None:
        """Write a snapshot: the model and its bookkeeping, in one file and in one step."""
        self.book.config, self.book.kinds = self.config.meaning, self.reading.kinds
        self.book.predictions = 0 if self.predictions is None else self.predictions.size
        self.book.put_into(self.model)
        self.model.save(self.path)


def run(
    config: Config, source: Source, path: Path, *, out: Path | None = None, resume: bool = True
) -> bool:
    """Stream a table into a model.

    Args:
        config: What the model is and how its data come.
        source: The table.
        path: The file of the snapshot.
        out: The file of predictions, if any.
        resume: Whether to continue from a snapshot that exists.

    Returns:
        Whether the table was read to its end. If not, the run was interrupted.

    Raises:
        DataError: If a row cannot be used, and such rows are not left out.
    """
    console = Console(stderr=True)
    running = Run(config, path, out, resume=resume)
    out_of_it = left_out(source, config, running.book.left_out, console)
    batches = feed(source, config, Learned(str(path), running.rows, running.book.place), console)
    with interruptions() as interrupted, bar(console, running.rows) as show:
        saved, is_due = time.monotonic(), False
        for piece, place in batches:
            if piece is not None:
                frame, bad = running.reading.read(piece)
                out_of_it.take(bad)
                running.book.rows += len(bad)
                running.book.left_out = out_of_it.counts
                show(piece.size, _scores(running.take(frame)) if len(frame) else "")
            is_due |= piece is not None or place != running.book.place
            running.book.place = place
            if is_due and (interrupted or time.monotonic() - saved >= config.stream.snapshot):
                running.save()
                saved, is_due = time.monotonic(), False
            if interrupted:
                break
        else:
            if running.rows:
                running.save()
    if interrupted:
        console.print(
            f"Interrupted. {running.rows - out_of_it.count:,} rows are learned and saved in "
            f"{path}. {out_of_it.summary} The same command continues from there.",
            soft_wrap=True, markup=False,
        )  # fmt: skip
        return False
    if running.predictions is not None:
        running.predictions.end()
    console.print(f"{running.model!r}\nModel: {path}")
    if out_of_it.count:
        console.print(out_of_it.summary, soft_wrap=True, markup=False)
    return True


def _scores(report: UpdateReport) -> str:
    scores = ", ".join(f"{n} {s:.2f}" for n, s in report.log_predictive.items())
    return f"{report.result} {scores}"
