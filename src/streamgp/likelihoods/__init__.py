"""Likelihoods: the distributions of observations, one file per family."""

from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.bernoulli import Bernoulli
from streamgp.likelihoods.beta import Beta
from streamgp.likelihoods.binomial import Binomial
from streamgp.likelihoods.categorical import Categorical
from streamgp.likelihoods.exponential import Exponential
from streamgp.likelihoods.gamma import Gamma
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.heteroscedastic import HeteroscedasticGaussian
from streamgp.likelihoods.lognormal import LogNormal
from streamgp.likelihoods.negative_binomial import NegativeBinomial
from streamgp.likelihoods.ordinal import Ordinal
from streamgp.likelihoods.poisson import Poisson
from streamgp.likelihoods.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Exponential",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "Likelihood",
    "LogNormal",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
]
