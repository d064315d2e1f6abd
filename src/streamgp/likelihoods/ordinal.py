"""One of K classes in order: grades, ratings."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.algebra import column, square
from streamgp.likelihoods.arrays import ByName, Latent, Observed, Slopes, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.classes import check_classes
from streamgp.likelihoods.support import IntegerInterval, Support
from streamgp.parameters import Node, Parameter, Real, positive
from streamgp.registry import storable

_SPREAD = 3.0  # of the prior of the first cutpoint, in log odds


class _Bounds(NamedTuple):
    """The class of each row, the cutpoints l < u about it (±∞ at the ends), and what u has over l.

    A difference of cutpoints would round away what a small gap is.
    """

    k: Int[np.ndarray, "*#b"]
    lower: Values
    upper: Values
    gap: Values


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Ordinal(Likelihood):
    """One of several classes in order, such as grades or ratings.

    y is a class number from 0 (the lowest) to K − 1 (the highest), or a label of a categorical data
    type. A larger latent parameter f makes higher classes more probable:
    P(y ≤ k) = sigmoid(c_k − f) with K − 1 cutpoints c. They are described by the first of them and
    by the gaps between them, so that they stay in order.

    Args:
        classes: The number K of classes; at least 2. There is no default. Count every class that
            may occur, also those that the first data do not have.
        first: The first cutpoint c_0, in log odds. By default it starts where the lowest class has
            its share of the channel's first data at f = 0. It is learned, unless it is given as
            `fixed(…)`.
        gaps: The K − 2 gaps between neighbouring cutpoints; positive. By default they start where
            the other classes have their shares. They are learned, unless given as `fixed(…)`.

    Raises:
        ConfigurationError: If `classes` is not a whole number of at least 2.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"grade": sgp.Ordinal(5)}).channels
        ('grade',)
    """

    classes: int = dataclasses.field()
    first: Parameter = None
    gaps: Parameter = None

    log_concave = True

    def __post_init__(self) -> None:
        check_classes(self.classes)

    @property
    def support(self) -> Support:
        return IntegerInterval(0, self.classes - 1)

    @property
    def cutpoints(self) -> Float[np.ndarray, " C"]:
        """Where f is cutpoint k, classes up to k and those above it are equally probable."""
        return self.first + np.concatenate([np.zeros(1), np.cumsum(self.gaps)])

    def start(self, y: Observed) -> "Ordinal":
        """With the cutpoints that give every class its share of the first data where f = 0."""
        counts = np.bincount(y.astype(int), minlength=self.classes) + 1.0
        cutpoints = special.logit(np.cumsum(counts)[:-1] / counts.sum())
        first = cutpoints[0] if self.first is None else self.first
        if not isinstance(first, Node):
            first = Real(first, _SPREAD)
        gaps = positive(self.gaps, np.diff(cutpoints))
        shape = gaps.value.shape
        if shape != (self.classes - 2,):
            raise ConfigurationError(
                problem(
                    f"{self.classes - 2} gaps", f"shape {shape}", "Give one per pair of cutpoints."
                )
            )
        return Ordinal(self.classes, first, gaps)

    def log_density(self, y: Observed, f: Latent) -> Values:
        """In the form that no rounding reaches: for l < u the cutpoints about the class,

        σ(u−f) − σ(l−f) = σ(u−f)·σ(f−l)·(1 − exp(l−u)).
        """
        _, lower, upper, gap = self._bounds(y)
        log_below = special.log_expit(upper - f[..., 0])
        return log_below + special.log_expit(f[..., 0] - lower) + np.log(-np.expm1(-gap))

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        _, lower, upper, _ = self._bounds(y)
        f = f[..., 0]
        above, below = special.expit(f - upper), special.expit(lower - f)
        bend = above * special.expit(upper - f) + below * special.expit(f - lower)
        return column(below - above), square(-bend)

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        """A shift of all cutpoints is one of f; gap j moves the cutpoints after it up."""
        k, lower, upper, gap = self._bounds(y)
        f = f[..., 0]
        above, below = special.expit(f - upper), special.expit(lower - f)
        gap_number = np.arange(self.classes - 2)
        moves_upper = (gap_number < k[..., None]) & (k < self.classes - 1)[..., None]
        moves_lower = gap_number < k[..., None] - 1
        opens = gap_number == k[..., None] - 1  # the class itself, if it is between two cutpoints
        by_gap = np.where(opens & moves_upper, 1 / np.expm1(gap)[..., None], 0.0)
        by_gap = by_gap + moves_upper * above[..., None] - moves_lower * below[..., None]
        return {"first": above - below, "gaps": by_gap}

    def cdf(self, y: Observed, f: Latent) -> Values:
        k = np.clip(np.floor(y), 0, self.classes - 2).astype(int)
        inside = special.expit(self.cutpoints[k] - f[..., 0])
        return np.where(y < 0, 0.0, np.where(y < self.classes - 1, inside, 1.0))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        """Of the K indicators of the classes: the numbers only say their order."""
        _, lower, upper, gap = self._bounds(np.arange(float(self.classes)))
        chances = special.expit(upper - f) * special.expit(f - lower) * -np.expm1(-gap)
        return chances, chances * (1 - chances)

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        below = special.expit(self.cutpoints - f)
        return np.sum(rng.random((*f.shape[:-1], 1)) > below, axis=-1).astype(float)

    def _bounds(self, y: Observed) -> _Bounds:
        k = np.clip(y, 0, self.classes - 1).astype(int)
        edges = np.concatenate([[-np.inf], self.cutpoints, [np.inf]])
        gaps = np.concatenate([[np.inf], self.gaps, [np.inf]])
        return _Bounds(k, edges[k], edges[k + 1], gaps[k])
