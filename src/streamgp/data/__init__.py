"""Data: from arrays and frames as users have them to padded batches of numbers."""

from streamgp.data.batch import ANY_FAMILYS_VALUE, Batch, Rows, blank_batch, join, pack
from streamgp.data.buckets import by_chunks, inducing_bucket, row_bucket

__all__ = [
    "ANY_FAMILYS_VALUE",
    "Batch",
    "Rows",
    "blank_batch",
    "by_chunks",
    "inducing_bucket",
    "join",
    "pack",
    "row_bucket",
]
