"""One small file a family of observations."""

from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.bernoulli import Bernoulli
from streamgp.likelihoods.categorical import Categorical
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.poisson import Poisson

__all__ = ["Bernoulli", "Categorical", "Gaussian", "Likelihood", "Poisson"]
