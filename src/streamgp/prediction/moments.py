"""Mean and variance of predictive distributions."""

import numpy as np
from jaxtyping import Float

from streamgp.likelihoods import Likelihood


def moments(
    likelihood: Likelihood,
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a new observation per row; per class where there are classes.

    An observation that brings more than its value (an exposure, a weight) is taken bare.
    """
    return likelihood.bare.predictive_moments(mean, covariance)
