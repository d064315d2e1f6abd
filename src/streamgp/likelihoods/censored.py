"""Observations of which only a bound may be known."""

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.algebra import each
from streamgp.likelihoods.annotated import Annotated, in_base
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.modifier import of_base
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

    # What a bound says depends on q(f), and on the noise as no common factor.
    conjugate = False
    scales_sites = False
    strength = 1.0

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

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        y, side = self.parted(y)
        return self.base.valid(y) & np.isin(side, (-1, 0, 1))

    def is_value(self, y: Observed) -> Bool[np.ndarray, " N"]:
        return self.parted(y)[1] == 0

    def strength_gradient(self, by_log_strength: float) -> ByName:
        return {}

    def told(self, method: str, y: Observed, *about: Any) -> Any:
        """Of what was seen, as the base has it; of bounds, as `_Bound` has them."""
        batch = np.broadcast_shapes(y.shape[:-1], about[0].shape[:-1])
        value, side = self.parted(np.broadcast_to(y, (*batch, y.shape[-1])))
        rest = [np.broadcast_to(a, (*batch, *a.shape[about[0].ndim - 1 :])) for a in about]
        kinds = {0: self.base, -1: _Bound(self.base, upper=False), 1: _Bound(self.base, upper=True)}
        present = [kind for kind in kinds if kind == 0 or np.any(side == kind)]
        rows = [side == kind for kind in present]
        found = [
            getattr(kinds[kind], method)(value[own], *(a[own] for a in rest))
            for kind, own in zip(present, rows, strict=True)
        ]

        def together(*parts: np.ndarray) -> np.ndarray:
            total = np.zeros((*batch, *parts[0].shape[1:]))
            for own, part in zip(rows, parts, strict=True):
                total[own] = part
            return total

        return in_base(each(together, *found))


@dataclasses.dataclass(frozen=True, eq=False)
class _Bound(Likelihood):
    """A family of which all that is known is that the value is no higher than y, or higher."""

    base: Likelihood
    upper: bool

    log_concave = of_base("log_concave")
    latents = of_base("latents")
    columns = of_base("columns")

    def plain_parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        return self.base.plain_parameters()

    def log_density(self, y: Observed, f: Latent) -> Values:
        return self.base.log_tail(y, f, self.upper)

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        return self.base.tail_derivatives(y, f, self.upper)

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        return self.base.tail_parameter_gradient(y, f, self.upper)

    def first_site(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """As if the bound had been seen, where it is far from what was predicted."""
        gradient, precision = self.base.first_site(y, mean, covariance)
        says_much = self.log_density(y, mean) < _UNLIKELY
        return says_much[:, None] * gradient, says_much[:, None, None] * precision
