"""Models by key in Apache Spark: streams with checkpointed state, and tables.

It needs the extra `streamgp[spark]` and Java 17 or newer.
"""

from streamgp.spark.session import SETTINGS, session
from streamgp.spark.streams import learn, models
from streamgp.spark.tables import predict, predictor, train

__all__ = ["SETTINGS", "learn", "models", "predict", "predictor", "session", "train"]
