"""Which families have classes."""

from streamgp.likelihoods.base import Likelihood


def class_count(likelihood: Likelihood) -> int:
    """The number of classes that an observation is one of; 0 if it is not one of some classes.

    `Multinomial` and `Dirichlet` have classes too, but observe a number for each of them.
    """
    bare = likelihood.bare
    return bare.classes if bare.observation_dim == 1 else 0
