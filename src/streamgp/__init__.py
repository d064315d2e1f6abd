"""Continual multi-task Gaussian processes."""

from streamgp import plot
from streamgp.errors import (
    BudgetWarning,
    ConfigurationError,
    DataError,
    FileError,
    NumericalError,
    StreamGPError,
)
from streamgp.gp import ContinualGP, from_bytes, load
from streamgp.inducing import AbstractStrategy, Adaptive, Fixed, Growing, KMeans, Refined, View
from streamgp.inference.carry import Marginals, Projection
from streamgp.inference.learner import Learner, State
from streamgp.inference.vem import VEM
from streamgp.kernels import (
    RBF,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
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
from streamgp.numerics.compiling import use_compilation_cache
from streamgp.online.forgetting import Forgetting
from streamgp.online.report import Result, UpdateReport
from streamgp.parameters import fixed
from streamgp.prediction.prediction import Prediction
from streamgp.prediction.predictor import Predictions
from streamgp.registry import register
from streamgp.version import __version__ as __version__

__all__ = [
    "RBF",
    "VEM",
    "AbstractStrategy",
    "Adaptive",
    "Bernoulli",
    "Beta",
    "Binomial",
    "BudgetWarning",
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
    "Result",
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
