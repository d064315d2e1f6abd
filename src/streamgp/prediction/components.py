"""Components: what a prediction's latent parameters are the sum of."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.data.columns import Column
from streamgp.data.frames import make_frame
from streamgp.errors import DataError, problem
from streamgp.prediction.checks import check_probability


@dataclasses.dataclass(frozen=True, eq=False)
class Component:
    """One summand of a latent parameter, or several together: normal at each input.

    Attributes:
        mean: Its expected value at each input: (N,), or (N, J) where there are several latent
            parameters.
        variance: Its variance, likewise.
    """

    mean: np.ndarray
    variance: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """Its standard deviation."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that holds it with that probability.

        Args:
            level: The probability.

        Returns:
            The lower and the upper ends.

        Raises:
            DataError: If the level is not between 0 and 1.
        """
        check_probability(level)
        half = special.ndtri(0.5 + 0.5 * level) * self.std
        return self.mean - half, self.mean + half


class Components(Mapping[str, Component]):
    """The components of a channel's latent parameters f, by name. They add up to f.

    The level, each part of the mean (a trend, seasons, events by name) and each latent function
    are components; a latent function whose kernel is a sum has one for each part of the sum.
    Everything is in the units of f: those of y for `Gaussian`, of its logarithm or logit for counts
    and classes.

    Means add up to `latent_mean` exactly. Variances do not add up: data often tell the sum of two
    components well and each of them poorly, so that errors of one are made up for by the other.
    All entries of `covariance` add up to `latent_variance`.

    Attributes:
        names: The components, in order.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> day = np.arange(100.0)
        >>> mean = sgp.Constant() + sgp.Trend()
        >>> model = sgp.ContinualGP(sgp.Gaussian(), mean=mean, seasons=[7])
        >>> report = model.update(day, 5 + 0.1 * day + np.sin(2 * np.pi * day / 7))
        >>> parts = model.forecast(7, every=1).components()
        >>> parts.names[:4]
        ('level', 'trend', 'season 7', 'latent 0: Matern12')
        >>> bool(abs(parts["season 7"].mean.max() - 1) < 0.1)
        True
    """

    def __init__(
        self,
        names: tuple[str, ...],
        mean: Float[np.ndarray, "N J c"],
        covariance: Float[np.ndarray, "N J c c"],
        inputs: Mapping[str, Column],
    ):
        self.names = names
        self._mean = mean
        self._covariance = covariance
        self._inputs = dict(inputs)

    def __getitem__(self, name: str) -> Component:
        if name not in self.names:
            raise KeyError(name)
        return self.together(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Components({', '.join(self.names)})"

    @property
    def covariance(self) -> np.ndarray:
        """Of all components at each input: (N, c, c), or (N, J, c, c)."""
        return self._plain(self._covariance)

    def together(self, *names: str) -> Component:
        """Several components as one, such as the level and the trend.

        Args:
            *names: Which ones.

        Returns:
            Their sum, with its own variance.

        Raises:
            DataError: If there is no such component, or none is named.
        """
        unknown = [name for name in names if name not in self.names]
        if unknown or not names:
            got = ", ".join(map(repr, unknown)) or "none"
            raise DataError(
                problem(f"components among {list(self.names)}", got, "Check the names.")
            )
        own = np.isin(self.names, names)
        mean = self._mean[:, :, own].sum(axis=-1)
        variance = self._covariance[:, :, own][..., own].sum(axis=(-2, -1))
        return Component(self._plain(mean), self._plain(np.maximum(variance, 0.0)))

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """A row for each input: the inputs, and mean and std of each component.

        Args:
            backend: "pandas" or "polars".

        Returns:
            A frame with columns such as `trend` and `trend_std`. Where a channel has several latent
            parameters, `trend_0`, `trend_0_std`, `trend_1` and so on.
        """
        columns: dict[str, Any] = dict(self._inputs)
        for name, part in self.items():
            for ending, mean, std in _by_parameter(part):
                columns[f"{name}{ending}"] = mean
                columns[f"{name}{ending}_std"] = std
        return make_frame(columns, backend)

    def _plain(self, values: Float[np.ndarray, "N J ..."]) -> np.ndarray:
        """Without the axis of latent parameters, where there is only one."""
        return values[:, 0] if values.shape[1] == 1 else values


def _by_parameter(part: Component) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The ending of a name, mean and std, for each latent parameter."""
    if part.mean.ndim == 1:
        yield "", part.mean, part.std
        return
    for j, (mean, std) in enumerate(zip(part.mean.T, part.std.T, strict=True)):
        yield f"_{j}", mean, std
