"""Continual multi-task Gaussian processes."""

from streamgp import plot
from streamgp.errors import (
    BudgetWarning,
    ConfigurationError,
    DataError,
    EpochWarning,
    FileError,
    NumericalError,
    SourceError,
    StaleError,
    StoreError,
    StreamGPError,
    UnknownKeyError,
)
from streamgp.fleet import Fleet
from streamgp.gp import ContinualGP, from_bytes, load
from streamgp.inducing import AbstractStrategy, Adaptive, Fixed, Growing, KMeans, Refined
from streamgp.inference.vem import VEM
from streamgp.kernels import (
    CARMA,
    RBF,
    SHO,
    FunctionKernel,
    Kernel,
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
    Censored,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    Likelihood,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
    Weighted,
)
from streamgp.merging import merge
from streamgp.model.means import Constant, Events, Mean, Seasonal, Trend
from streamgp.model.periods import suggest_periods
from streamgp.online.forgetting import Forgetting
from streamgp.online.report import Result, UpdateReport
from streamgp.parameters import fixed
from streamgp.prediction.prediction import Prediction
from streamgp.registry import register
from streamgp.store import Store
from streamgp.version import __version__ as __version__

__all__ = [
    "CARMA",
    "RBF",
    "SHO",
    "VEM",
    "AbstractStrategy",
    "Adaptive",
    "Bernoulli",
    "Beta",
    "Binomial",
    "BudgetWarning",
    "Categorical",
    "Censored",
    "ConfigurationError",
    "Constant",
    "ContinualGP",
    "DataError",
    "Dirichlet",
    "EpochWarning",
    "Events",
    "Exponential",
    "FileError",
    "Fixed",
    "Fleet",
    "Forgetting",
    "FunctionKernel",
    "Gamma",
    "Gaussian",
    "Growing",
    "HeteroscedasticGaussian",
    "KMeans",
    "Kernel",
    "Likelihood",
    "Linear",
    "LogNormal",
    "Matern12",
    "Matern32",
    "Matern52",
    "Mean",
    "Multinomial",
    "NegativeBinomial",
    "NumericalError",
    "Ordinal",
    "Periodic",
    "Poisson",
    "Prediction",
    "RationalQuadratic",
    "Refined",
    "Result",
    "Seasonal",
    "SourceError",
    "StaleError",
    "Store",
    "StoreError",
    "StreamGPError",
    "StudentT",
    "Trend",
    "UnknownKeyError",
    "UpdateReport",
    "Weighted",
    "fixed",
    "from_bytes",
    "load",
    "merge",
    "plot",
    "register",
    "suggest_periods",
]
