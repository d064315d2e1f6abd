"""Continual multi-task Gaussian processes."""

from streamgp import plot
from streamgp.errors import ConfigurationError, DataError, NumericalError, StreamGPError
from streamgp.forgetting import Forgetting
from streamgp.inducing import Adaptive, Fixed, Growing, KMeans, View
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
from streamgp.likelihoods import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    Likelihood,
    LogNormal,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
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
    "Beta",
    "Binomial",
    "Categorical",
    "ConfigurationError",
    "ContinualGP",
    "DataError",
    "Exponential",
    "Fixed",
    "Forgetting",
    "Gamma",
    "Gaussian",
    "Growing",
    "HeteroscedasticGaussian",
    "KMeans",
    "Learner",
    "Likelihood",
    "Linear",
    "LogNormal",
    "Marginals",
    "Matern12",
    "Matern32",
    "Matern52",
    "NegativeBinomial",
    "NumericalError",
    "Ordinal",
    "Periodic",
    "Poisson",
    "Prediction",
    "Projection",
    "RationalQuadratic",
    "State",
    "StreamGPError",
    "StudentT",
    "UpdateReport",
    "View",
    "fixed",
    "plot",
]
