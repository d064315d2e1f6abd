"""Observations of which only a bound may be known."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.annotated import Annotated
from streamgp.likelihoods.base import Expected, Likelihood
from streamgp.likelihoods.weighted import Weighted
from streamgp.registry import storable

_UNLIKELY = -5.0  # log probability from which a bound says much


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Censored(Annotated):
    """A family whose observations may be bounds, as their last number says.

    It is 0 where the value was seen, −1 where the true value is no higher than it (below what can
    be measured), and 1 where the true value is higher (still running, out of range). Predictions
    are of values that are seen.

    Args:
        base: The family of the values, such as `Gaussian()` or `LogNormal()`.

    Raises:
        ConfigurationError: If the values of the family have no order.
    """

    annotation: ClassVar[str] = "censored"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.base, Weighted):
            raise ConfigurationError(
                problem(
                    "a family that is weighted last", "Censored(Weighted(…))",
                    "Write `Weighted(Censored(…))`.",
                )
            )  # fmt: skip
        if not self.base.ordered or self.base.classes:
            raise ConfigurationError(
                problem(
                    "a family of ordered values",
                    type(self.base).__name__,
                    "Only these can be above or below.",
                )
            )

    def valid(self, y: Float[np.ndarray, "N C"]) -> Bool[np.ndarray, " N"]:
        y, side = self.parted(y)
        return self.base.valid(y) & np.isin(side, (-1, 0, 1))

    def log_density(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> Float[np.ndarray, "*#b"]:
        return self._merged(y, lambda family, *row: {"all": family.log_density(*row)}, f)["all"]

    def derivatives(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> tuple[Float[np.ndarray, "*#b J"], Float[np.ndarray, "*#b J J"]]:
        return self._tuple("derivatives", y, f)

    def parameter_gradient(
        self, y: Float[np.ndarray, "*#b C"], f: Float[np.ndarray, "*#b J"]
    ) -> dict[str, Any]:
        return {
            "base": self._merged(y, lambda family, *row: family.parameter_gradient(*row), f),
        }

    def expected(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Expected:
        """Of what was seen, as the family itself has it; of bounds, by quadrature."""
        return Expected(*self._tuple("expected", y, mean, covariance))

    def expected_parameter_rows(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> dict[str, Any]:
        def of(family: Likelihood, *row: np.ndarray) -> dict[str, Any]:
            return family.expected_parameter_rows(*row)

        return {"base": self._merged(y, of, mean, covariance)}

    def curvature(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        return self._tuple("curvature", y, mean, covariance)

    def first_site(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        return self._tuple("first_site", y, mean, covariance)

    def log_predictive(
        self,
        y: Float[np.ndarray, "N C"],
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Float[np.ndarray, " N"]:
        def of(family: Likelihood, *row: np.ndarray) -> dict[str, Any]:
            return {"all": family.log_predictive(*row)}

        return self._merged(y, of, mean, covariance)["all"]

    def is_value(self, y: Float[np.ndarray, "N C"]) -> Bool[np.ndarray, " N"]:
        return self.parted(y)[1] == 0

    def _tuple(self, method: str, y: np.ndarray, *arrays: np.ndarray) -> tuple[Any, ...]:
        """A method that returns several arrays, of the family that each row has."""

        def of(family: Likelihood, *row: np.ndarray) -> dict[int, Any]:
            return dict(enumerate(getattr(family, method)(*row)))

        return tuple(self._merged(y, of, *arrays).values())

    def _merged(
        self,
        y: Float[np.ndarray, "*#b C"],
        function: Callable[..., dict],
        *arrays: np.ndarray,
    ) -> dict:
        """`function(family, y, …)` of the rows of each kind, put together again."""
        batch = np.broadcast_shapes(y.shape[:-1], arrays[0].shape[:-1])
        value, side = self.parted(np.broadcast_to(y, (*batch, y.shape[-1])))
        rest = [np.broadcast_to(a, (*batch, *a.shape[arrays[0].ndim - 1 :])) for a in arrays]
        total: dict = {}
        for family, kind in self._kinds():
            rows = side == kind
            if not (rows.any() or kind == 0):
                continue
            for name, part in function(family, value[rows], *(a[rows] for a in rest)).items():
                total.setdefault(name, np.zeros((*batch, *part.shape[1:])))[rows] = part
        return total

    def _kinds(self) -> tuple[tuple[Likelihood, int], ...]:
        return (self.base, 0), (_Bound(self.base, upper=False), -1), (_Bound(self.base, True), 1)


@dataclasses.dataclass(frozen=True, eq=False)
class _Bound(Likelihood):
    """A family of which all that is known is that the value is no higher than y, or higher."""

    base: Likelihood
    upper: bool

    @property
    def log_concave(self) -> bool:  # type: ignore[override]
        return self.base.log_concave

    @property
    def latents(self) -> int:
        return self.base.latents

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    def plain_parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        return self.base.plain_parameters()

    def log_density(self, y: np.ndarray, f: Float[np.ndarray, "*#b J"]) -> Float[np.ndarray, "*#b"]:
        return self.base.log_tail(y, f, self.upper)

    def derivatives(
        self, y: np.ndarray, f: Float[np.ndarray, "*#b J"]
    ) -> tuple[Float[np.ndarray, "*#b J"], Float[np.ndarray, "*#b J J"]]:
        return self.base.tail_derivatives(y, f, self.upper)

    def parameter_gradient(self, y: np.ndarray, f: Float[np.ndarray, "*#b J"]) -> dict[str, Any]:
        return self.base.tail_parameter_gradient(y, f, self.upper)

    def first_site(
        self,
        y: np.ndarray,
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """As if the bound had been seen, where it is far from what was predicted."""
        gradient, precision = self.base.first_site(y, mean, covariance)
        says_much = self.log_density(y, mean) < _UNLIKELY
        return says_much[:, None] * gradient, says_much[:, None, None] * precision
