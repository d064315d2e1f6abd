"""Streams of Spark: models by key that learn as rows come, and the models of a checkpoint."""

import os
from typing import Any, cast

from streamgp.data.durations import days
from streamgp.errors import ConfigurationError, problem
from streamgp.gp import ContinualGP
from streamgp.spark.layout import Layout
from streamgp.spark.outputs import PROBLEM, named

_DAY = 86_400_000  # milliseconds


def learn(
    frame: Any,
    model: ContinualGP,
    *,
    key: str | list[str],
    inputs: str | list[str],
    channel: str | None = None,
    value: str | None = None,
    output: str = "scores",
    ahead: Any = None,
    every: Any = None,
    level: float = 0.95,
    learn: bool = True,
    silence: Any = None,
) -> Any:
    """Learn one model per key from a stream; Spark keeps the models as keyed state.

    Start the result with `writeStream` and a checkpoint, as usual. After a restart from the
    checkpoint every row counts once. `models` reads the models of a checkpoint.

    Args:
        frame: A streaming frame of Spark: wide, with one column per channel, or long.
        model: The model that every key starts from. It may have data.
        key: The column, or columns, that say which model a row belongs to.
        inputs: The input column, or a list of them: numbers, timestamps or dates.
        channel: The column with the channels' names, if the frame is long.
        value: The column with the values, if the frame is long.
        output: What the resulting rows are. "scores": how probable each observation was before it
            was learned. "reports": one row per channel of each batch. "anomalies": those of
            them that were surprising, had outliers, or show a change. "forecasts": predictions
            after the latest input.
        ahead: For forecasts: a number of steps, or how far to go (see `ContinualGP.forecast`).
        every: For forecasts: the length of a step.
        level: For forecasts: of the intervals.
        learn: Whether hyperparameters are learned.
        silence: A duration such as "30min". A key that has no rows for so long gives a row that
            says so. The stream must then run on processing time, with a trigger.

    Returns:
        A streaming frame. Its last column, `problem`, says why a batch of a key could not be
        learned, or that a key is silent; it is null otherwise.

    Raises:
        ConfigurationError: If settings contradict each other.
        DataError: If the frame does not have the columns.

    Examples:
        >>> import streamgp as sgp
        >>> from streamgp.spark import learn
        >>> scores = learn(  # doctest: +SKIP
        ...     readings, sgp.ContinualGP(sgp.Gaussian()), key="sensor", inputs="time"
        ... )
        >>> query = scores.writeStream.option(  # doctest: +SKIP
        ...     "checkpointLocation", "checkpoint"
        ... ).start()
    """
    from pyspark.sql.types import StructType

    from streamgp.spark.processor import ModelProcessor, Task

    layout = Layout.of(frame, key, inputs, channel, value)
    kind = named(output, ahead, every, level)
    if ahead is not None and len(layout.inputs) != 1:
        raise ConfigurationError(
            problem("one input column, to forecast along", f"{list(layout.inputs)}", "Name one.")
        )
    packed = layout.packed(frame)
    schema = f"{layout.key_types(frame)}, {kind.columns(layout)}, {PROBLEM} STRING"
    fields = tuple(field.name for field in cast(Any, StructType.fromDDL(schema)))
    milliseconds = None if silence is None else round(_DAY * days(silence))
    task = Task(model.to_bytes(), layout, tuple(packed.columns), kind, fields, learn, milliseconds)
    rows = packed.groupBy(*layout.keys).transformWithState(
        statefulProcessor=ModelProcessor(task),
        outputStructType=schema,
        outputMode="Append",  # no row is ever taken back
        timeMode="None" if silence is None else "ProcessingTime",
    )
    return layout.unpacked(rows)


def models(spark: Any, checkpoint: str | os.PathLike[str]) -> Any:
    """The models of a checkpoint of `learn`.

    Args:
        spark: The session.
        checkpoint: The folder of the checkpoint.

    Returns:
        A frame with the key columns and `model`: bytes, for `streamgp.from_bytes`, `predict`
        or a `Fleet`.

    Examples:
        >>> from streamgp.spark import models, predict
        >>> forecasts = predict(  # doctest: +SKIP
        ...     future, models(spark, "checkpoint"), key="sensor", inputs="time"
        ... )
    """
    from streamgp.spark.processor import STATE

    states = (
        spark.read.format("statestore").option("stateVarName", STATE).load(os.fspath(checkpoint))
    )
    return states.select("key.*", f"value.{STATE}")
