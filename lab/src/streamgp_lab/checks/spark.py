"""What a micro-batch of many keys costs in Spark, beside a processor that only keeps its state.

Hyperparameters are known, as they are where a fleet was trained from a table before it streams.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import streamgp as sgp
from streamgp_lab.checks import command

_SCHEMA = "sensor STRING, x DOUBLE, y DOUBLE"
_BATCHES = 5
_ROWS = 5  # per key and batch


def main(keys: int = 200) -> None:
    """Measure both.

    Args:
        keys: How many models.
    """
    from streamgp.spark import learn, models, session

    spark = session("streamgp-lab", "local[2]", spark_sql_shuffle_partitions=2)
    spark.sparkContext.setLogLevel("OFF")
    folder = Path(tempfile.mkdtemp())
    for batch in range(_BATCHES):
        _write(folder / "in", batch, keys)
    stream = (
        spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    )
    learned = learn(stream, _known(), key="sensor", inputs="x", output="reports")
    ours, _ = _seconds(learned, folder / "ours")
    size = models(spark, folder / "ours" / "checkpoint").selectExpr("avg(length(model))").first()[0]
    empty, _ = _seconds(_idle(stream, round(size)), folder / "empty")
    _write(folder / "in", _BATCHES, keys)
    _, again = _seconds(learned, folder / "ours")
    table = Table(title=f"{keys:,} keys, {_ROWS} rows each, {size / 1000:.0f} KB of state per key")
    for column in ("processor", "seconds per micro-batch", "ms per key"):
        table.add_column(column, justify="left" if column == "processor" else "right")
    for name, seconds in (("empty", empty), ("streamgp", ours)):
        table.add_row(name, f"{seconds:.1f}", f"{1000 * seconds / keys:.2f}")
    Console().print(table)
    Console().print(f"{ours / empty:.2f} times the empty processor.")
    Console().print(f"A restart with one micro-batch takes {again:.1f} seconds in all.")
    spark.stop()


def _known() -> sgp.ContinualGP:
    """A model whose hyperparameters are known."""
    kernel = sgp.Matern32(sgp.fixed(1.5), sgp.fixed(1.0))
    return sgp.ContinualGP(sgp.Gaussian(sgp.fixed(0.1)), latents=kernel, learning=None)


def _write(folder: Path, batch: int, keys: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(batch)
    x = np.tile(np.arange(_ROWS) + _ROWS * batch, keys) / 10
    sensor = np.repeat(np.arange(keys), _ROWS).astype(str)
    y = np.sin(x) + 0.1 * rng.normal(size=len(x))
    frame = pd.DataFrame({"sensor": sensor, "x": x, "y": y})
    frame.to_parquet(folder / f"{batch:04}.parquet")


def _idle(stream: Any, size: int) -> Any:
    """A stream whose processor reads and writes a state of so many bytes, and does nothing else."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class Idle(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("model", "model BINARY")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timers: Any) -> Iterator[Any]:  # noqa: N802 (Spark's name)
            known, count = self.state.get(), sum(1 for _ in rows)
            self.state.update((known[0] if known is not None else bytes(size),))
            yield Row(sensor=key[0], observations=count)

        def close(self) -> None:
            pass

    return stream.groupBy("sensor").transformWithState(
        Idle(), "sensor STRING, observations BIGINT", "Append", "None"
    )


def _seconds(frame: Any, folder: Path) -> tuple[float, float]:
    """The median time of a micro-batch, but for the first, and the time of all of them."""
    begin = time.perf_counter()
    query = (
        frame.writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    whole = time.perf_counter() - begin
    found = [p["batchDuration"] / 1000 for p in query.recentProgress if p["numInputRows"]]
    return float(np.median(found[1:] or found)), whole


if __name__ == "__main__":
    command("spark")
