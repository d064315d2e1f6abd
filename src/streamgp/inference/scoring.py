"""Scores of rows before they are learned: how probable they were, and where in what was predicted.

All of it follows from q(f) at the rows, which the log predictive density needs anyway.
"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.data.batch import Batch
from streamgp.inference.posterior import Marginals
from streamgp.likelihoods import Likelihood, Weighted
from streamgp.model.multitask import MultiTaskGP, of_groups

_EXTREME = 1e-9  # probability of a tail from where distribution functions are near rounding
_FAR = -special.ndtri(_EXTREME)  # its normal score
_NEAR = 3.0  # deviations out that an extreme row would lie if its noise were as large as it seems
_MOMENTS = ("moments", "predictive_parts", "predictive_moments")
_PER_UNIT = {"exposure", "trials"}  # what the mean of a count is in proportion to


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """What was predicted of each row, beside what came. NaN where a family cannot tell.

    Attributes:
        table: A row for each row, and the properties below as columns.
    """

    table: Float[np.ndarray, "N 6"]

    @classmethod
    def none(cls) -> "Scored":
        """Of no rows."""
        return cls(np.zeros((0, 6)))

    @property
    def log_predictive(self) -> Float[np.ndarray, " N"]:
        """log p(y)."""
        return self.table[:, 0]

    @property
    def low(self) -> Float[np.ndarray, " N"]:
        """P(Y < y), unless there is a formula for the score."""
        return self.table[:, 1]

    @property
    def high(self) -> Float[np.ndarray, " N"]:
        """P(Y ≤ y), likewise; the same as `low` unless values are discrete."""
        return self.table[:, 2]

    @property
    def score(self) -> Float[np.ndarray, " N"]:
        """The normal score of y, if there is a formula for it or y is extreme.

        Of an extreme y it is at least the number of standard deviations from the mean.
        """
        return self.table[:, 3]

    @property
    def normal(self) -> list[float]:
        """The normal scores of rows with continuous values; NaN of the others."""
        score = self.table[:, 3]
        if np.isnan(score).any():
            low, high = self.table[:, 1], self.table[:, 2]
            inside = np.isnan(score) & (low == high)
            score = np.where(inside, special.ndtri(np.where(inside, high, 0.5)), score)
        return score.tolist()

    @property
    def crps(self) -> Float[np.ndarray, " N"]:
        """The continuous ranked probability score, of families with a formula."""
        return self.table[:, 4]

    @property
    def moderate(self) -> Float[np.ndarray, " N"]:
        """Of an extreme y, a value that would move the mean of f as y would with larger noise.

        The noise is so large that y would lie three deviations out. Of families with a formula.
        """
        return self.table[:, 5]


def scored(model: MultiTaskGP, batch: Batch, at_rows: Marginals) -> Scored:
    """The scores of a batch's rows under q(f), in the order in which the rows came."""
    table = np.full((batch.size, 6), np.nan)
    groups = of_groups(model, batch, at_rows.mean, at_rows.covariance)
    for group, likelihood, mean, covariance in groups:
        own = table[group.rows]
        own[:, 0] = likelihood.log_predictive(group.y, mean, covariance)
        if has_cdf(likelihood):
            _place(likelihood, group.y, mean, covariance, own)
    return Scored(batch.as_they_came(table))


def joined(parts: list[Scored]) -> Scored:
    """Scores of consecutive rows, put together."""
    return Scored(np.concatenate([part.table for part in parts]))


def has_cdf(likelihood: Likelihood) -> bool:
    """Whether values are ordered, and the family says how probable lower ones are."""
    return likelihood.ordered and _has(type(likelihood.bare), "cdf", "predictive_cdf")


@functools.cache
def _has(family: type[Likelihood], *methods: str) -> bool:
    """Whether a family has one of these methods of its own."""
    return any(getattr(family, name) is not getattr(Likelihood, name) for name in methods)


def transform(
    likelihood: Likelihood,
    y: Float[np.ndarray, "N ..."],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """P(Y < y) and P(Y ≤ y). They are the same unless Y is discrete."""
    if isinstance(likelihood, Weighted):  # the density would be that of several rows
        y, likelihood = likelihood.values_of(y), likelihood.base
    high = likelihood.predictive_cdf(y, mean, covariance)
    if not likelihood.support.is_discrete:
        return high, high
    chance = np.exp(likelihood.log_predictive(y, mean, covariance))
    return np.maximum(high - chance, 0.0), high


def _place(
    likelihood: Likelihood,
    y: Float[np.ndarray, "N ..."],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    table: np.ndarray,
) -> None:
    """Fill in where the rows of one channel lie in what was predicted."""
    score = likelihood.predictive_score(y, mean, covariance)
    if score is None:
        low, high = _bounds(likelihood, y, mean, covariance, table[:, 0])
        table[:, 1], table[:, 2] = low, high
        extreme = (high < _EXTREME) | (low > 1 - _EXTREME)
    else:
        table[:, 3] = score
        extreme = np.abs(score) > _FAR
    crps = likelihood.predictive_crps(y, mean, covariance)
    if crps is not None:
        table[:, 4] = crps
    if extreme.any():
        which = mean[extreme], covariance[extreme]
        _far(likelihood, y[extreme], *which, table, np.flatnonzero(extreme))
    if likelihood.observation_dim > 1:
        table[~likelihood.is_value(y), 1:] = np.nan


def _bounds(
    likelihood: Likelihood,
    y: Float[np.ndarray, "N ..."],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    log_predictive: Float[np.ndarray, " N"],
) -> tuple[np.ndarray, np.ndarray]:
    """As `transform`, with log densities that are there already."""
    if isinstance(likelihood, Weighted):
        return transform(likelihood, y, mean, covariance)
    high = likelihood.predictive_cdf(y, mean, covariance)
    if not likelihood.support.is_discrete:
        return high, high
    return np.maximum(high - np.exp(log_predictive), 0.0), high


def _distance(
    likelihood: Likelihood,
    y: Float[np.ndarray, "N ..."],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
) -> Float[np.ndarray, " N"]:
    """How many standard deviations rows are from the mean; NaN where that means nothing.

    Counts that bring an exposure are taken per unit of it, with the deviation of a single unit.
    """
    family, (value, *others) = likelihood.bare, likelihood.split(y)
    if likelihood.classes or not _has(type(family), *_MOMENTS):
        return np.full(len(y), np.nan)
    if _PER_UNIT & {*likelihood.columns}:
        value = value / others[0]
    centre, variance = family.predictive_moments(mean, covariance)
    # A probability that rounds to 0 or 1 leaves no variance.
    usable = (variance > 0) & np.isfinite(variance)
    return np.where(usable, value - centre, np.nan) / np.sqrt(np.where(usable, variance, 1.0))


def _far(
    likelihood: Likelihood,
    y: Float[np.ndarray, "N ..."],
    mean: Float[np.ndarray, "N J"],
    covariance: Float[np.ndarray, "N J J"],
    table: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Say how far extreme rows are, and what they would be if they were not."""
    score, family = table[rows, 3], likelihood.bare
    if np.isnan(score).all():
        side = np.where(table[rows, 2] < _EXTREME, -1.0, 1.0)
        score = side * np.fmax(_FAR, side * _distance(likelihood, y, mean, covariance))
    table[rows, 3] = score
    moderate = family.predictive_value(_NEAR**2 / score, mean, covariance)
    if moderate is not None:
        table[rows, 5] = moderate
