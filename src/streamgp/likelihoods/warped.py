"""Families of values that another family has on another scale."""

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from streamgp.likelihoods.algebra import log_of
from streamgp.likelihoods.arrays import Covariances, Latent, Means, Observed, Values
from streamgp.likelihoods.base import Expected
from streamgp.likelihoods.modifier import Modifier, of_base
from streamgp.likelihoods.support import Positive, Support


class Warp(ABC):
    """An increasing function of observations onto the real numbers."""

    support: ClassVar[Support]  # what it is a function of

    @abstractmethod
    def forward(self, y: Values) -> Values:
        """The function; below its support, as at its lower end."""

    @abstractmethod
    def inverse(self, z: Values) -> Values:
        """Back to observations; infinite where they are beyond all numbers."""

    @abstractmethod
    def log_slope(self, y: Values) -> Values:
        """The logarithm of its derivative."""


class Log(Warp):
    """The logarithm."""

    support: ClassVar[Support] = Positive()

    def forward(self, y: Values) -> Values:
        return log_of(y)

    def inverse(self, z: Values) -> Values:
        with np.errstate(over="ignore"):
            return np.exp(z)

    def log_slope(self, y: Values) -> Values:
        return -self.forward(y)


@dataclasses.dataclass(frozen=True, eq=False)
class Warped(Modifier):
    """A family whose values, warped, are those of its base.

    A subclass says what the base is, and has the moments of y.
    """

    warp: ClassVar[Warp]

    @property
    def support(self) -> Support:
        return self.warp.support

    adds_up = of_base("adds_up")

    def values_of(self, y: Observed) -> Observed:
        return self.warp.forward(y)

    def summable(self, y: Observed) -> Values:
        return self.base.summable(self.warp.forward(y))

    def of_sums(self, mean: Values) -> Observed:
        return self.warp.inverse(self.base.of_sums(mean))

    def log_density(self, y: Observed, f: Latent) -> Values:
        return self.told("log_density", y, f) + self.warp.log_slope(y)

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        value, *slopes = self.told("expected", y, mean, covariance)
        return Expected(value + self.warp.log_slope(y), *slopes)

    def log_predictive(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        return self.told("log_predictive", y, mean, covariance) + self.warp.log_slope(y)

    def predictive_value(
        self, score: Values, mean: Means, covariance: Covariances
    ) -> Values | None:
        value = self.base.predictive_value(score, mean, covariance)
        return None if value is None else self.warp.inverse(value)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return self.warp.inverse(self.base.sample(f, rng))
