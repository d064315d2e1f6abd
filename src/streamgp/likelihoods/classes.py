"""Families that have classes or parts."""

import dataclasses
from typing import ClassVar

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.base import Likelihood


def class_count(likelihood: Likelihood) -> int:
    """The number of classes that an observation is one of; 0 if it is not one of some classes.

    `Multinomial` and `Dirichlet` have classes too, but observe a number for each of them.
    """
    bare = likelihood.bare
    return bare.classes if bare.observation_dim == 1 else 0


def check_classes(classes: int) -> None:
    """Raise where there are not at least two."""
    if not (isinstance(classes, int) and classes >= 2):
        raise ConfigurationError(
            problem("at least 2 classes", repr(classes), "Count every class there can be.")
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Softmax(Likelihood):
    """A family with one latent parameter per class, of which the shares are softmax(f)."""

    classes: int = dataclasses.field()

    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_classes(self.classes)

    @property
    def latents(self) -> int:
        return self.classes
