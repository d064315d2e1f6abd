"""Which families have classes."""

from numpyro.distributions import constraints

from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.categorical import Categorical
from streamgp.likelihoods.ordinal import Ordinal


def class_count(likelihood: Likelihood) -> int:
    """The number of classes a channel's values are in; 0 if they are not classes."""
    if isinstance(likelihood, Categorical | Ordinal):
        return likelihood.classes
    return 2 if likelihood.support is constraints.boolean else 0
