"""The shapes of what families take and return."""

from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

# One value for each f, and f itself: J latent parameters in its last axis. Leading axes are those
# of rows and nodes, and are broadcast against each other.
Values: TypeAlias = Float[np.ndarray, "*#b"]
Latent: TypeAlias = Float[np.ndarray, "*#b J"]
Slopes: TypeAlias = tuple[Latent, Float[np.ndarray, "*#b J J"]]  # gradient and Hessian by f

# Observations: an axis more than `Values` if each is several numbers.
Observed: TypeAlias = Float[np.ndarray, "..."]

# Of N rows: one value each, q(f) = N(mean, covariance), and sites as gradient and precision.
PerRow: TypeAlias = Float[np.ndarray, " N"]
Means: TypeAlias = Float[np.ndarray, "N J"]
Covariances: TypeAlias = Float[np.ndarray, "N J J"]
Sites: TypeAlias = tuple[Means, Covariances]

ByParameter: TypeAlias = dict[str, Any]  # derivatives, by the names of fields
