"""Continual multi-task Gaussian processes."""

from streamgp.errors import ConfigurationError, DataError, NumericalError, StreamGPError
from streamgp.inducing import Adaptive, Fixed, Growing, View
from streamgp.inference.carry import Marginals, Projection
from streamgp.kernels import (
    RBF,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
from streamgp.learner import VEM, Learner, State
from streamgp.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson
from streamgp.model import ContinualGP
from streamgp.parameters import fixed
from streamgp.prediction import Prediction
from streamgp.report import UpdateReport

__version__ = "0.1.0"

__all__ = [
    "RBF",
    "VEM",
    "Adaptive",
    "Bernoulli",
    "Categorical",
    "ConfigurationError",
    "ContinualGP",
    "DataError",
    "Fixed",
    "Gaussian",
    "Growing",
    "Learner",
    "Likelihood",
    "Linear",
    "Marginals",
    "Matern12",
    "Matern32",
    "Matern52",
    "NumericalError",
    "Periodic",
    "Poisson",
    "Prediction",
    "Projection",
    "RationalQuadratic",
    "State",
    "StreamGPError",
    "UpdateReport",
    "View",
    "fixed",
]
