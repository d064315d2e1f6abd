"""Families made of another family.

Everything that is asked about rows goes through one method, `told`. So a modifier only says what it
does to observations, and to what the other family says of them.
"""

from abc import abstractmethod
from typing import Any

from streamgp.likelihoods.arrays import Observed
from streamgp.likelihoods.base import Likelihood


def of_base(name: str) -> Any:
    """A property that is the base's."""
    return property(lambda self: getattr(self.base, name))


def _of_rows(name: str) -> Any:
    """A method about observations, which are its first argument."""

    def method(self: "Modifier", y: Observed, *about: Any) -> Any:
        return self.told(name, y, *about)

    method.__name__, method.__doc__ = name, getattr(Likelihood, name).__doc__
    return method


class Modifier(Likelihood):
    """A family made of another one, its base."""

    base: Likelihood

    conjugate = of_base("conjugate")
    log_concave = of_base("log_concave")
    latents = of_base("latents")
    offset_spread = of_base("offset_spread")
    scales_sites = of_base("scales_sites")
    strength = of_base("strength")

    @abstractmethod
    def values_of(self, y: Observed) -> Observed:
        """Observations as the base has them."""

    def told(self, method: str, y: Observed, *about: Any) -> Any:
        """What a method of the base says of these observations, as this family has to say it."""
        return getattr(self.base, method)(self.values_of(y), *about)

    log_density = _of_rows("log_density")
    derivatives = _of_rows("derivatives")
    gradient = _of_rows("gradient")
    parameter_gradient = _of_rows("parameter_gradient")
    expected = _of_rows("expected")
    expected_parameter_rows = _of_rows("expected_parameter_rows")
    curvature = _of_rows("curvature")
    site_gradient = _of_rows("site_gradient")
    first_site = _of_rows("first_site")
    log_predictive = _of_rows("log_predictive")
    predictive_cdf = _of_rows("predictive_cdf")
    predictive_score = _of_rows("predictive_score")
    cdf = _of_rows("cdf")
    log_tail = _of_rows("log_tail")
    tail_derivatives = _of_rows("tail_derivatives")
    tail_parameter_gradient = _of_rows("tail_parameter_gradient")

    def strength_gradient(self, by_log_strength: float) -> dict[str, Any]:
        return self.base.strength_gradient(by_log_strength)
