"""Observations that count more, or less, than once."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from streamgp.likelihoods.annotated import Annotated
from streamgp.likelihoods.base import Expected, each
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

    @property
    def conjugate(self) -> bool:  # type: ignore[override]
        return self.base.conjugate

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        return self.base.ordered

    @property
    def classes(self) -> int:  # type: ignore[override]
        return self.base.classes

    def with_least_noise(self, part: float, y: Float[np.ndarray, "N C"]) -> "Weighted":
        base = self.base.with_least_noise(part, self.values_of(y))
        return replaced(self, base=base)

    @property
    def scales_sites(self) -> bool:
        return self.base.scales_sites

    @property
    def strength(self) -> float:
        return self.base.strength

    def strength_gradient(self, by_log_strength: float) -> dict[str, Any]:
        return {"base": self.base.strength_gradient(by_log_strength)}

    def valid(self, y: Float[np.ndarray, "N C"]) -> Bool[np.ndarray, " N"]:
        y, weight = self.parted(y)
        return self.base.valid(y) & np.isfinite(weight) & (weight >= 0)

    def log_density(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> Float[np.ndarray, "*#b"]:
        y, weight = self.parted(y)
        return weight * self.base.log_density(y, f)

    def derivatives(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> tuple[Float[np.ndarray, "*#b J"], Float[np.ndarray, "*#b J J"]]:
        y, weight = self.parted(y)
        gradient, hessian = self.base.derivatives(y, f)
        return weight[..., None] * gradient, weight[..., None, None] * hessian

    def gradient(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> Float[np.ndarray, "*#b J"]:
        y, weight = self.parted(y)
        return weight[..., None] * self.base.gradient(y, f)

    def parameter_gradient(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> dict[str, Any]:
        y, weight = self.parted(y)
        batch = len(np.broadcast_shapes(weight.shape, f.shape[:-1]))
        gradients = self.base.parameter_gradient(y, f)
        return {"base": each(lambda part: _times(weight, part, batch), gradients)}

    def expected(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Expected:
        y, weight = self.parted(y)
        return Expected(*(_times(weight, p, 1) for p in self.base.expected(y, mean, covariance)))

    def expected_parameter_rows(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> dict[str, Any]:
        y, weight = self.parted(y)
        rows = self.base.expected_parameter_rows(y, mean, covariance)
        return {"base": each(lambda part: _times(weight, part, 1), rows)}

    def curvature(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        y, weight = self.parted(y)
        gradient, precision = self.base.curvature(y, mean, covariance)
        return _times(weight, gradient, 1), _times(weight, precision, 1)

    def site_gradient(
        self,
        y: Float[np.ndarray, "N C"],
        offset: Float[np.ndarray, "N J"],
        by_linear: Float[np.ndarray, "N J"],
        by_precision: Float[np.ndarray, "N J J"],
    ) -> dict[str, Any]:
        y, weight = self.parted(y)
        slopes = _times(weight, by_linear, 1), _times(weight, by_precision, 1)
        return {"base": self.base.site_gradient(y, offset, *slopes)}

    def first_site(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        y, weight = self.parted(y)
        gradient, precision = self.base.first_site(y, mean, covariance)
        return _times(weight, gradient, 1), _times(weight, precision, 1)

    def log_predictive(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        y, weight = self.parted(y)
        return weight * self.base.log_predictive(y, mean, covariance)

    def is_value(self, y: Float[np.ndarray, "N C"]) -> Bool[np.ndarray, " N"]:
        return self.base.is_value(self.values_of(y))


def _times(weight: np.ndarray, values: np.ndarray, batch: int) -> np.ndarray:
    """The product, where `values` have `batch` axes that the weight's are the last of."""
    return weight.reshape(*weight.shape, *[1] * (values.ndim - batch)) * values
