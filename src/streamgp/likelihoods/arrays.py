"""The shapes of what families take and return."""

from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

# One value for each f, and f itself: J latent parameters in its last axis. Leading axes are those
# of rows and nodes, and are broadcast against each other.
Values: TypeAlias = Float[np.ndarray, "*#b"]
Latent: TypeAlias = Float[np.ndarray, "*#b J"]

# A vector and a matrix for each f: gradient and Hessian, or the gradient and precision of a site.
Slopes: TypeAlias = tuple[Latent, Float[np.ndarray, "*#b J J"]]

# Derivatives by parameters, by the names of the fields.
ByName: TypeAlias = dict[str, Any]

# Observations: an axis more than `Values` if each is several numbers.
Observed: TypeAlias = Float[np.ndarray, "..."]

# q(f) = N(mean, covariance) at N rows.
Means: TypeAlias = Float[np.ndarray, "N J"]
Covariances: TypeAlias = Float[np.ndarray, "N J J"]
