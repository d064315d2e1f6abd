"""Shapes of what kernels take and give: N inputs and M others, each with P columns."""

import numpy as np
from jaxtyping import Float

Inputs = Float[np.ndarray, "N P"]
Others = Float[np.ndarray, "M P"]
Matrix = Float[np.ndarray, "N M"]  # a number per pair of an input and another
Values = Float[np.ndarray, " N"]  # a number per input
Columns = Float[np.ndarray, " P"]  # a number per input column
