"""A stream of Spark as a program of its own, for tests that kill it: `driver.py FOLDER`."""

import sys
from pathlib import Path

import streamgp as sgp
from streamgp.spark import learn, session
from tests.spark.conftest import begun, read_stream


def main(folder: Path) -> None:
    # A task whose worker is gone is tried again, as on a cluster.
    spark = session(
        "killed", "local[2,4]", spark_sql_shuffle_partitions=2, spark_ui_enabled="false"
    )
    spark.sparkContext.setLogLevel("OFF")
    frame = read_stream(spark, folder / "in", "sensor STRING, time TIMESTAMP, y DOUBLE")
    scores = learn(frame, sgp.ContinualGP(sgp.Gaussian()), key="sensor", inputs="time")
    begun(scores, folder).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
