"""Continual multi-task Gaussian processes."""

from streamgp import plot
from streamgp.compiling import use_compilation_cache
from streamgp.errors import (
    ConfigurationError,
    DataError,
    FileError,
    NumericalError,
    StreamGPError,
)
from streamgp.files import register
from streamgp.forgetting import Forgetting
from streamgp.inducing import Adaptive, Fixed, Growing, KMeans, Refined, View
from streamgp.inference.carry import Marginals, Projection
from streamgp.io import from_bytes, load
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
from streamgp.predicting import Predictions
from streamgp.prediction import Prediction
from streamgp.report import UpdateReport
from streamgp.version import __version__ as __version__

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
    "FileError",
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
    "Predictions",
    "Projection",
    "RationalQuadratic",
    "Refined",
    "State",
    "StreamGPError",
    "StudentT",
    "UpdateReport",
    "View",
    "fixed",
    "from_bytes",
    "load",
    "plot",
    "register",
    "use_compilation_cache",
]
