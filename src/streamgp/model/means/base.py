"""The base class of mean functions, and sums of them."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis, input_names
from streamgp.errors import ConfigurationError, problem
from streamgp.registry import storable


@dataclasses.dataclass(frozen=True)
class OfScale:
    """A prior spread as a multiple of the channel's scale, which is that of its first data."""

    factor: float


Spread: TypeAlias = float | OfScale | None


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
    def spreads(self) -> tuple[Spread, ...]:
        """The prior standard deviation of each function's weight, in units of the latent parameter.

        None stands for a broad one: see `Likelihood.offset_spread`. `OfScale(2.0)` is twice the
        scale of the channel's first data.
        """

    @property
    def size(self) -> int:
        """B, the number of functions."""
        return len(self.spreads)

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        """The name of what each function describes; functions of one name are one component.

        Args:
            axes: What each input column is.
        """
        return (type(self).__name__,) * self.size

    def shortest_waves(self, width: int) -> Float[np.ndarray, " P"]:
        """The length of the shortest wave along each of so many input columns, for pictures.

        It is infinite where nothing repeats. It is asked of a mean that has started.
        """
        return np.full(width, np.inf)

    def started(self, x: Float[np.ndarray, "N P"], axes: Sequence[Axis]) -> "Mean":
        """This mean in the model's own numbers, once it is known what inputs are.

        It is called when a channel is made, before any of its data are learned. From then on the
        functions stay as they are: they must not depend on what comes later.

        Args:
            x: The first inputs: those of the first batch or, for a channel that comes later, those
                of its first batch and the inducing points.
            axes: What each input column is. Times are days since the axis's day.

        Returns:
            A mean with as many functions; by default this one as it is.
        """
        return self

    def __add__(self, other: Any) -> "Mean":
        if not isinstance(other, Mean):
            return NotImplemented
        return MeanSum((*_parts(self), *_parts(other)))


@storable
@dataclasses.dataclass(frozen=True)
class MeanSum(Mean):
    """The functions of several means; of none, if there are no parts."""

    parts: tuple[Mean, ...]

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        return np.concatenate([np.zeros((len(x), 0)), *(part(x) for part in self.parts)], axis=1)

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return tuple(spread for part in self.parts for spread in part.spreads)

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        return tuple(label for part in self.parts for label in part.labels(axes))

    def shortest_waves(self, width: int) -> Float[np.ndarray, " P"]:
        every = [np.full(width, np.inf), *(part.shortest_waves(width) for part in self.parts)]
        return np.minimum.reduce(every)

    def started(self, x: Float[np.ndarray, "N P"], axes: Sequence[Axis]) -> Mean:
        return MeanSum(tuple(part.started(x, axes) for part in self.parts))


NONE = MeanSum(())


def _parts(mean: Mean) -> tuple[Mean, ...]:
    return mean.parts if isinstance(mean, MeanSum) else (mean,)


# -- what several means share --------------------------------------------------------------------


def check_spread(spread: Any, name: str = "spread") -> None:
    """Raise where a prior standard deviation cannot be one."""
    if spread is not None and not (np.isfinite(spread) and spread > 0):
        raise ConfigurationError(
            problem(f"a positive {name}, or None", repr(spread), "None is the default.")
        )


def check_count(count: Any, least: int, name: str) -> None:
    """Raise where a number of functions cannot be one."""
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not (whole and count >= least):
        raise ConfigurationError(
            problem(f"a whole number of {name}, at least {least}", repr(count), "Check the number.")
        )


def column_of(on: int | str | None, axes: Sequence[Axis]) -> int:
    """The number of the input column that a mean is a function of.

    Args:
        on: Its number or its name; None for the first column with times or, without times, the
            first column.
        axes: What each input column is.

    Raises:
        ConfigurationError: If there is no such column.
    """
    if on is None:
        return next((i for i, axis in enumerate(axes) if axis.is_time), 0)
    names = input_names(axes)
    if isinstance(on, str) and on in names:
        return names.index(on)
    if not isinstance(on, str) and 0 <= on < len(axes):
        return int(on)
    raise ConfigurationError(
        problem(f"an input column among {list(names)}, or its number", repr(on), "Check `on`.")
    )


def column(x: Float[np.ndarray, "N P"], on: Any, mean: Mean) -> Float[np.ndarray, " N"]:
    """The input column that a started mean is a function of."""
    if isinstance(on, str):
        raise not_started(mean)
    return x[:, 0 if on is None else on]


def not_started(mean: Mean) -> ConfigurationError:
    """The error of a mean that is asked for values before it is known what inputs are."""
    return ConfigurationError(
        problem(
            "a mean that knows what inputs are", repr(mean), "Call `mean.started(x, axes)` first."
        )
    )
