"""One session of Spark for all tests here, and streams of small files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from streamgp.spark import session


@pytest.fixture(scope="session")
def spark():
    found = session(
        "tests",
        "local[2]",
        spark_sql_shuffle_partitions=2,
        spark_ui_enabled="false",
        spark_sql_session_timeZone="America/New_York",  # instants must not depend on it
    )
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


def readings(batch: int, keys: int = 4, rows: int = 6) -> pd.DataFrame:
    """One batch of a park of sensors, each with its own level; the same every time."""
    rng = np.random.default_rng(batch)
    minutes = np.tile(np.arange(rows) + rows * batch, keys)
    sensor = np.repeat(np.arange(keys), rows)
    y = 10 * sensor + np.sin(minutes / 5) + 0.1 * rng.normal(size=len(minutes))
    start = pd.Timestamp("2024-03-09 22:00", tz="UTC")  # a clock changes in New York that night
    return pd.DataFrame(
        {
            "sensor": [f"s{k}" for k in sensor],
            "time": start + pd.to_timedelta(minutes, "min"),
            "y": y,
        }
    )


def write(frame: pd.DataFrame, folder: Path, number: int) -> None:
    """A file that a stream of Spark finds whole."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number}"
    frame.to_parquet(hidden, coerce_timestamps="us", allow_truncated_timestamps=True)
    hidden.rename(folder / f"{number:04}.parquet")


def read_stream(spark, folder: Path, schema: str):
    """One micro-batch per file, in order."""
    return (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .option("latestFirst", "false")
        .parquet(str(folder))
    )


def run(frame, folder: Path) -> pd.DataFrame:
    """Run a stream to the end of its files; all rows that it has ever given."""
    begun(frame, folder).trigger(availableNow=True).start().awaitTermination()
    return result(frame.sparkSession, folder)


def begun(frame, folder: Path):
    """A stream that writes its rows to files."""
    return (
        frame.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
    )


def result(spark, folder: Path) -> pd.DataFrame:
    """The rows that a stream has written."""
    found = spark.read.parquet(str(folder / "out"))
    return pd.DataFrame([row.asDict() for row in found.collect()], columns=found.columns)
