"""What families share whose observations say one more thing of themselves."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.arrays import ByName, Latent, Observed, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.modifier import Modifier, of_base
from streamgp.parameters import replaced


def _of_values(name: str) -> Any:
    """A method about observations that leaves out the number beside the value."""
    return lambda self, y, *about: Modifier.told(self, name, y, *about)


@dataclasses.dataclass(frozen=True, eq=False)
class Annotated(Modifier):
    """A family whose observations have one more number, as their last.

    New observations are predicted as the family itself predicts them: what the number would be is
    not known of them.

    Args:
        base: The family of the values.

    Raises:
        ConfigurationError: If that is no family.
    """

    annotation: ClassVar[str]  # the name of the number

    base: Likelihood

    support = of_base("support")

    cdf = _of_values("cdf")
    predictive_cdf = _of_values("predictive_cdf")
    predictive_score = _of_values("predictive_score")
    predictive_crps = _of_values("predictive_crps")

    def __post_init__(self) -> None:
        if not isinstance(self.base, Likelihood):
            raise ConfigurationError(
                problem("a likelihood", repr(self.base), "Give the family of the values.")
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.base.columns, self.annotation)

    @property
    def bare(self) -> Likelihood:
        return self.base.bare

    def parted(self, y: Observed) -> tuple[Observed, Values]:
        """Observations as the family has them, and the number that each has beside."""
        if not y.size:
            y = y.reshape(0, self.observation_dim)
        return (y[..., 0] if self.observation_dim == 2 else y[..., :-1]), y[..., -1]

    def values_of(self, y: Observed) -> Observed:
        return self.parted(y)[0]

    def told(self, method: str, y: Observed, *about: Any) -> Any:
        return in_base(super().told(method, y, *about))

    def start(self, y: Observed) -> Self:
        """From the values alone, as if each had been seen once."""
        return replaced(self, base=self.base.start(self.values_of(y)))

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        return self.base.location(self.values_of(y))

    def strength_gradient(self, by_log_strength: float) -> ByName:
        return {"base": super().strength_gradient(by_log_strength)}

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        return self.base.moments(f)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return self.base.sample(f, rng)


def in_base(found: Any) -> Any:
    """What the base says, its derivatives by parameters as those of the field `base`."""
    return {"base": found} if isinstance(found, Mapping) else found
