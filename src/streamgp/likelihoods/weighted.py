"""Observations that count more, or less, than once."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from streamgp.likelihoods.algebra import each
from streamgp.likelihoods.annotated import Annotated
from streamgp.likelihoods.arrays import ByName, Covariances, Means, Observed, Values
from streamgp.likelihoods.modifier import of_base
from streamgp.parameters import replaced
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Weighted(Annotated):
    """A family whose observations bring a weight each, as their last number.

    A row of weight w enters as w independent rows of the same value would. Its predictive log
    density is w times that of the value.

    Args:
        base: The family of the values, such as `Gaussian()`.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP({"survey": sgp.Weighted(sgp.Gaussian())})
        >>> values, weights = np.sin(np.arange(6.0)), np.full(6, 2.0)
        >>> report = model.update({"survey": (np.arange(6.0), np.stack([values, weights], axis=1))})
        >>> report.observations
        {'survey': 6}
    """

    annotation: ClassVar[str] = "weight"

    ordered = of_base("ordered")
    classes = of_base("classes")

    def with_least_noise(self, part: float, y: Observed) -> "Weighted":
        return replaced(self, base=self.base.with_least_noise(part, self.values_of(y)))

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        y, weight = self.parted(y)
        return self.base.valid(y) & np.isfinite(weight) & (weight >= 0)

    def is_value(self, y: Observed) -> Bool[np.ndarray, " N"]:
        return self.base.is_value(self.values_of(y))

    def told(self, method: str, y: Observed, *about: Any) -> Any:
        found = super().told(method, y, *about)
        weight = self.parted(y)[1]
        axes = max(weight.ndim, about[0].ndim - 1)  # those of rows and nodes, before any other
        return each(lambda part: _times(weight, part, axes), found)

    def site_gradient(
        self, y: Observed, offset: Means, by_linear: Means, by_precision: Covariances
    ) -> ByName:
        weight: Values = self.parted(y)[1]
        by = _times(weight, by_linear, 1), _times(weight, by_precision, 1)
        return super().told("site_gradient", y, offset, *by)


def _times(weight: np.ndarray, values: np.ndarray, axes: int) -> np.ndarray:
    """The product, where the weight's axes are the last of the first so many of `values`."""
    return weight.reshape(*weight.shape, *[1] * (values.ndim - axes)) * values
