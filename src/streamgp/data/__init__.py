"""From what people hand over to padded arrays."""

from streamgp.data.batch import Batch, pack
from streamgp.data.buckets import inducing_bucket, row_bucket

__all__ = ["Batch", "inducing_bucket", "pack", "row_bucket"]
