"""What families share whose observations say one more thing of themselves."""

import dataclasses
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.support import Support
from streamgp.parameters import replaced


@dataclasses.dataclass(frozen=True, eq=False)
class Annotated(Likelihood):
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

    def __post_init__(self) -> None:
        if not isinstance(self.base, Likelihood):
            raise ConfigurationError(
                problem("a likelihood", repr(self.base), "Give the family of the values.")
            )

    def values_of(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Observations as the family has them."""
        return self.parted(y)[0]

    def parted(
        self, y: Float[np.ndarray, "..."]
    ) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "*#b"]]:
        """Observations as the family has them, and the number that each has beside."""
        if not y.size:
            y = y.reshape(0, self.observation_dim)
        return (y[..., 0] if self.observation_dim == 2 else y[..., :-1]), y[..., -1]

    # -- what the family is ------------------------------------------------------------------

    @property
    def log_concave(self) -> bool:  # type: ignore[override]
        return self.base.log_concave

    @property
    def latents(self) -> int:
        return self.base.latents

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.base.columns, self.annotation)

    @property
    def support(self) -> Support:
        return self.base.support

    @property
    def bare(self) -> Likelihood:
        return self.base.bare

    @property
    def offset_spread(self) -> Float[np.ndarray, " J"]:
        return self.base.offset_spread

    def start(self, y: Float[np.ndarray, "N ..."]) -> Self:
        """From the values alone, as if each had been seen once."""
        return replaced(self, base=self.base.start(self.values_of(y)))

    def location(self, y: Float[np.ndarray, "N ..."]) -> tuple[np.ndarray, np.ndarray]:
        return self.base.location(self.values_of(y))

    # -- what it predicts --------------------------------------------------------------------

    def predictive_cdf(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        return self.base.predictive_cdf(self.values_of(y), mean, covariance)

    def predictive_score(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"] | None:
        return self.base.predictive_score(self.values_of(y), mean, covariance)

    def predictive_crps(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"] | None:
        return self.base.predictive_crps(self.values_of(y), mean, covariance)

    def cdf(
        self, y: Float[np.ndarray, "..."], f: Float[np.ndarray, "*#b J"]
    ) -> Float[np.ndarray, "*#b"]:
        return self.base.cdf(self.values_of(y), f)

    def moments(self, f: Float[np.ndarray, "*#b J"]) -> tuple[np.ndarray, np.ndarray]:
        return self.base.moments(f)

    def sample(self, f: Float[np.ndarray, "*#b J"], rng: np.random.Generator) -> Any:
        return self.base.sample(f, rng)
