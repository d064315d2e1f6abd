"""The compiled core of streamgp. Its sources are in core/."""

import numpy as np
import numpy.typing as npt

def inner(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float:
    """The inner product of two vectors."""
