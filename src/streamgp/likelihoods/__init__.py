"""One small file per family of observations."""

from streamgp.likelihoods.base import Expected, Likelihood
from streamgp.likelihoods.bernoulli import Bernoulli
from streamgp.likelihoods.beta import Beta
from streamgp.likelihoods.binomial import Binomial
from streamgp.likelihoods.categorical import Categorical
from streamgp.likelihoods.censored import Censored
from streamgp.likelihoods.classes import class_count
from streamgp.likelihoods.dirichlet import Dirichlet
from streamgp.likelihoods.exponential import Exponential
from streamgp.likelihoods.gamma import Gamma
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.heteroscedastic import HeteroscedasticGaussian
from streamgp.likelihoods.lognormal import LogNormal
from streamgp.likelihoods.multinomial import Multinomial
from streamgp.likelihoods.negative_binomial import NegativeBinomial
from streamgp.likelihoods.ordinal import Ordinal
from streamgp.likelihoods.poisson import Poisson
from streamgp.likelihoods.student_t import StudentT
from streamgp.likelihoods.weighted import Weighted

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Censored",
    "Dirichlet",
    "Expected",
    "Exponential",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "Likelihood",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
    "Weighted",
    "class_count",
]
