"""Tables of Spark: train models by key, and predict with them, all rows at once."""

from collections.abc import Iterator
from typing import Any, cast

from streamgp.errors import DataError, StreamGPError, problem
from streamgp.gp import ContinualGP, from_bytes
from streamgp.spark.layout import Layout

_PREDICTED = "mean DOUBLE, std DOUBLE, lower DOUBLE, upper DOUBLE"
_QUANTITIES = ("mean", "std", "lower", "upper")


def train(
    frame: Any,
    model: ContinualGP,
    *,
    key: str | list[str],
    inputs: str | list[str],
    channel: str | None = None,
    value: str | None = None,
    order: bool = True,
) -> Any:
    """One model per key, trained on a table.

    The rows of one key are held by one worker together.

    Args:
        frame: A frame of Spark: wide, with one column per channel, or long.
        model: The model that every key starts from.
        key: The column, or columns, that say which model a row belongs to.
        inputs: The input column, or a list of them: numbers, timestamps or dates.
        channel: The column with the channels' names, if the frame is long.
        value: The column with the values, if the frame is long.
        order: Whether the rows of a key are sorted by their inputs before they are learned.

    Returns:
        A frame with the key columns, `model` (bytes, for `streamgp.from_bytes` and `predict`),
        `observations`, and `problem`: why a key could not be learned, or null.

    Raises:
        DataError: If the frame does not have the columns.
    """
    layout, start = Layout.of(frame, key, inputs, channel, value), model.to_bytes()

    def trained(own: Any) -> Any:
        first = own[list(layout.keys)].head(1).reset_index(drop=True)
        rows = own.sort_values(list(layout.inputs)) if order else own
        learned = from_bytes(start)
        try:
            learned.update(layout.batch(rows), **layout.arguments)
        except StreamGPError as error:
            return first.assign(model=None, observations=0, problem=str(error))
        count = sum(learned.observations.values())
        return first.assign(model=learned.to_bytes(), observations=count, problem=None)

    schema = f"{layout.key_types(frame)}, model BINARY, observations BIGINT, problem STRING"
    return layout.packed(frame).groupBy(*layout.keys).applyInPandas(trained, schema)


def predict(
    frame: Any,
    models: Any,
    *,
    key: str | list[str],
    inputs: str | list[str],
    channel: str | None = None,
    level: float = 0.95,
) -> Any:
    """What the models of many keys predict at the rows of a table.

    Args:
        frame: A frame of Spark with the key and input columns. Other columns are left out.
        models: A frame with the key columns and `model`, as `train` and `models` give it.
        key: The column, or columns, that say which model a row belongs to.
        inputs: The input column, or a list of them, as when the models learned.
        channel: The channel; it may be left out if there is one only.
        level: Of the intervals.

    Returns:
        A frame with the key and input columns, and `mean`, `std`, `lower` and `upper`. Rows whose
        key has no model are left out.

    Raises:
        DataError: If the frame does not have the columns.
    """
    layout = Layout.of(frame, key, inputs)
    keys, columns = list(layout.keys), [*layout.keys, *layout.inputs]

    def predicted(rows: Any, own: Any) -> Any:
        if not len(own) or own["model"].iloc[0] is None:
            return rows.head(0).assign(**dict.fromkeys(_QUANTITIES, 0.0))
        model = from_bytes(bytes(own["model"].iloc[0]))
        return rows.assign(**_at(model, layout.batch(rows), channel, level))

    packed = layout.packed(frame.select(*columns))
    schema = f"{layout.key_types(frame)}, {layout.input_types}, {_PREDICTED}"
    pairs = packed.groupBy(*keys).cogroup(models.select(*keys, "model").groupBy(*keys))
    return layout.unpacked(pairs.applyInPandas(predicted, schema))


def predictor(model: ContinualGP, channel: str | None = None, *, level: float = 0.95) -> Any:
    """A function of Spark columns: what one model predicts at their values.

    Args:
        model: The model. Its bytes travel to every worker.
        channel: The channel; it may be left out if there is one only.
        level: Of the intervals.

    Returns:
        A `pandas_udf` that takes the input columns and gives a struct of `mean`, `std`, `lower`
        and `upper`: `frame.select(predictor(model)("x").alias("y")).select("y.*")`.

    Raises:
        DataError: If inputs are times; use `predict` for them, which knows their zone.
    """
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    if any(axis.is_time for axis in model.axes):
        raise DataError(
            problem("a model over numbers", "one over times", "Use `predict`, by a key.")
        )
    data, function = model.to_bytes(), cast(Any, pandas_udf)

    @function(_PREDICTED)
    def predicted(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        own = from_bytes(data)
        for given in batches:
            columns = (given,) if isinstance(given, pd.Series) else given  # one comes alone
            x = pd.concat(columns, axis=1).to_numpy(float)
            yield pd.DataFrame(_at(own, x, channel, level))

    return predicted


def _at(model: ContinualGP, x: Any, channel: str | None, level: float) -> dict[str, Any]:
    """Mean, deviation and interval of a channel at inputs."""
    prediction = model.predict(x, channel or model.channels[0])
    lower, upper = prediction.interval(level)
    return {"mean": prediction.mean, "std": prediction.std, "lower": lower, "upper": upper}
