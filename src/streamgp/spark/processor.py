"""ModelProcessor: one model per key, as keyed state of Spark's `transformWithState`."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamgp.errors import StreamGPError
from streamgp.spark import lately
from streamgp.spark.layout import Layout
from streamgp.spark.outputs import Output

STATE = "model"
STATE_SCHEMA = "model BINARY"
ALARM_SCHEMA = "expiry BIGINT"


@dataclasses.dataclass(frozen=True)
class Task:
    """What a stream does with the rows of a key.

    Attributes:
        start: The bytes of the model that every key starts from.
        layout: What the columns are.
        columns: The columns of the rows, in order.
        output: What is said about each batch.
        fields: The columns of the output, in order.
        learn: Whether hyperparameters are learned.
        silence: The milliseconds without rows after which a key is told of; None for never.
    """

    start: bytes
    layout: Layout
    columns: tuple[str, ...]
    output: Output
    fields: tuple[str, ...]
    learn: bool = True
    silence: int | None = None


class ModelProcessor(StatefulProcessor):
    """Folds the rows of a key into its model, which Spark keeps.

    A batch that cannot be used leaves the model as it was. The last column of the output then says
    why, and all other keys go on.
    """

    def __init__(self, task: Task):
        self.task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. Spark calls this before anything else."""
        self._handle = handle
        self._state = handle.getValueState(STATE, STATE_SCHEMA)
        if self.task.silence is not None:
            self._alarm = handle.getValueState("alarm", ALARM_SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Learn the rows of a key in one micro-batch."""
        task, layout = self.task, self.task.layout
        known = self._state.get()
        model = lately.model(key, bytes(known[0]) if known is not None else task.start)
        batch = pd.DataFrame.from_records([*rows], columns=list(task.columns))
        try:
            report = model.update(
                task.layout.batch(batch), learn=task.learn, **task.layout.arguments
            )
        except StreamGPError as error:
            yield self._problem(key, str(error))
        else:
            data = model.to_bytes()
            self._state.update((data,))
            lately.keep(key, data, model)
            for row in task.output.rows(layout, model, batch, report):
                yield self._row((*key, *row, None))
        if task.silence is not None:
            self._set_alarm(timerValues.getCurrentProcessingTimeInMs() + task.silence)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Tell of a key without rows."""
        seconds = (self.task.silence or 0) / 1000
        yield self._problem(key, f"no observation for {seconds:g} seconds")
        self._alarm.clear()

    def close(self) -> None:
        """Nothing is open."""

    def _set_alarm(self, expiry: int) -> None:
        earlier = self._alarm.get()
        if earlier is not None:
            self._handle.deleteTimer(earlier[0])
        self._handle.registerTimer(expiry)
        self._alarm.update((expiry,))

    def _problem(self, key: Any, sentence: str) -> Row:
        nothing = [None] * (len(self.task.fields) - len(key) - 1)
        return self._row((*key, *nothing, sentence))

    def _row(self, values: tuple[Any, ...]) -> Row:
        return Row(**dict(zip(self.task.fields, values, strict=True)))
