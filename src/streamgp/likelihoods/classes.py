"""Which families have classes."""

from streamgp.likelihoods.base import Likelihood


def class_count(likelihood: Likelihood) -> int:
    """The number of classes a channel's values are in; 0 if they are not classes."""
    bare = likelihood.bare
    return bare.classes if bare.observation_dim == 1 else 0
