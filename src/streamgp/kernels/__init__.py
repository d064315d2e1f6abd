"""Covariance functions whose parameters are constrained, trainable and named.

Kernels add and multiply (`+`, `*`, also with numbers), and `kernel.on(columns)` lets one see some
of the inputs only. Parameters left out start from the first batch: lengthscales at the spread of
each input (one each: ARD), the variance at that of the data. Give a number to start elsewhere, or
`fixed(number)` to keep it there. All are in the units of the user's inputs.

A kernel of your own derives from `Kernel`, or is a `FunctionKernel`. Those of tinygp are accepted
as they are, if tinygp is installed.
"""

from streamgp.kernels.base import Gradient, Kernel
from streamgp.kernels.carma import CARMA
from streamgp.kernels.composite import Constant, Multiple, OnColumns, Product, Sum
from streamgp.kernels.function import FunctionKernel
from streamgp.kernels.markov_rbf import MarkovRBF
from streamgp.kernels.oscillators import SHO, Cosine
from streamgp.kernels.over_time import over_time
from streamgp.kernels.periodic import Periodic
from streamgp.kernels.scaled import Linear, ScaledKernel
from streamgp.kernels.starting import start
from streamgp.kernels.stationary import RBF, Matern12, Matern32, Matern52, RationalQuadratic

__all__ = [
    "CARMA",
    "RBF",
    "SHO",
    "Constant",
    "Cosine",
    "FunctionKernel",
    "Gradient",
    "Kernel",
    "Linear",
    "MarkovRBF",
    "Matern12",
    "Matern32",
    "Matern52",
    "Multiple",
    "OnColumns",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "ScaledKernel",
    "Sum",
    "over_time",
    "start",
]
