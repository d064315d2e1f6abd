"""Mean functions: explicit basis functions of a channel, whose weights are learned with the rest.

f(x) = offset + h(x)·β + mixed latent functions, with a normal prior on β. The weights β belong to
the posterior: they are integrated out, never optimised (Rasmussen & Williams, section 2.7).
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from streamgp.errors import ConfigurationError, problem
from streamgp.registry import storable, storable_as


class Mean(ABC):
    """Basis functions h(x) of a channel. Derive a frozen dataclass for some of your own.

    Means add up: `Constant() + other` has the functions of both. Functions should be of order one
    over the inputs that matter, because their weights have a prior on the channel's own scale.
    """

    @abstractmethod
    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        """The functions at some inputs, in the user's units, one column per function."""

    @property
    @abstractmethod
    def spreads(self) -> tuple[float | None, ...]:
        """The prior standard deviation of each function's weight, in units of the latent parameter.

        None stands for a broad one: see `Likelihood.offset_spread`.
        """

    @property
    def size(self) -> int:
        """B, the number of functions."""
        return len(self.spreads)

    def __add__(self, other: Any) -> "Mean":
        if not isinstance(other, Mean):
            return NotImplemented
        return MeanSum((*_parts(self), *_parts(other)))


@storable_as("streamgp.mean.Constant")
@dataclasses.dataclass(frozen=True)
class Constant(Mean):
    """A level that the data tell, and that predictions far from all data return to.

    Args:
        spread: The prior standard deviation of the level around the mean of the channel's first
            data, in units of the latent parameter; positive. By default it is broad: a hundred
            times the spread of the first data for channels with real values, and 3 for latent
            parameters behind a logarithm or a logit.

    Raises:
        ConfigurationError: If the spread is not positive.

    Example:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant())
        >>> x = np.linspace(0, 50, 200)
        >>> for batch in np.split(x, 4):
        ...     report = model.update(batch, 300 + 4 * np.sin(batch))
        >>> round(float(model.predict([500.0]).mean[0]))
        300
    """

    spread: float | None = None

    def __post_init__(self) -> None:
        if self.spread is not None and not (np.isfinite(self.spread) and self.spread > 0):
            raise ConfigurationError(
                problem("a positive spread, or None", repr(self.spread), "None is broad.")
            )

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        return np.ones((len(x), 1))

    @property
    def spreads(self) -> tuple[float | None, ...]:
        return (self.spread,)


@storable
@dataclasses.dataclass(frozen=True)
class MeanSum(Mean):
    """The functions of several means; of none, if there are no parts."""

    parts: tuple[Mean, ...]

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        return np.concatenate([np.zeros((len(x), 0)), *(part(x) for part in self.parts)], axis=1)

    @property
    def spreads(self) -> tuple[float | None, ...]:
        return tuple(spread for part in self.parts for spread in part.spreads)


NONE = MeanSum(())

# One mean for all channels, or one for each of some channels by name. None: offsets stay where the
# first data put them.
Means: TypeAlias = Mean | Mapping[str, Mean | None] | None


def _parts(mean: Mean) -> tuple[Mean, ...]:
    return mean.parts if isinstance(mean, MeanSum) else (mean,)


def of_channel(means: Means, name: str) -> Mean:
    """The mean of one channel; a constant where a dictionary leaves it out."""
    own = means.get(name, Constant()) if isinstance(means, Mapping) else means
    return NONE if own is None else own


def check(means: Means, channels: Mapping[str, Any]) -> None:
    """Raise where a setting makes no sense."""
    given = dict(means) if isinstance(means, Mapping) else {None: means}
    for name, mean in given.items():
        if name is not None and name not in channels:
            raise ConfigurationError(
                problem(f"means of channels among {list(channels)}", repr(name), "Check the name.")
            )
        if mean is not None and not isinstance(mean, Mean):
            raise ConfigurationError(
                problem(
                    "a mean such as `Constant()`, a dictionary of means by channel, or None",
                    repr(mean),
                    "Pass an instance. A kernel describes latent functions, not a mean.",
                )
            )
