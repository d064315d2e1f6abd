"""Points at the centres of the data."""

import dataclasses
import warnings

import numpy as np
from jaxtyping import Float

from streamgp.inducing.strategy import AbstractStrategy, View
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class KMeans(AbstractStrategy):
    """Centres of the inputs, old and new, laid anew at every update.

    The old points stand for the inputs they were centres of. Together they weigh as much as the
    new inputs do, so that old ground keeps its part. Columns are compared on their own scales.

    Args:
        count: How many points there are.
        seed: Of the random start of the centres.
    """

    count: int
    seed: int = 0

    def __call__(self, view: View) -> Float[np.ndarray, "M P"]:
        from scipy.cluster.vq import kmeans2  # here, because it is slow to import

        old = view.points[0]
        times = -(-len(view.x) // len(old)) if len(old) else 0
        everything = np.concatenate([np.repeat(old, times, axis=0), view.x])
        distinct = np.unique(everything, axis=0)
        if len(distinct) <= self.count:
            return distinct
        scale = np.std(everything, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        generator = np.random.default_rng([self.seed, view.update])
        start = distinct[generator.choice(len(distinct), self.count, replace=False)]
        with warnings.catch_warnings():  # a cluster that loses its last input stays where it was
            warnings.simplefilter("ignore", UserWarning)
            centres, _ = kmeans2(everything / scale, start / scale, minit="matrix")
        return centres * scale
