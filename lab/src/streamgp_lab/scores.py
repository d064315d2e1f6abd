"""Scores of predictions on held-out data."""

from typing import NamedTuple

import numpy as np

from streamgp.likelihoods import Gaussian
from streamgp.prediction.prediction import Prediction

_DRAWS = 1000  # the paper divides its sums by this number of Monte Carlo draws


class Score(NamedTuple):
    """Means over held-out points, and the number that the paper would print."""

    points: int
    nlpd: float  # negative log predictive density per point
    error: float  # root mean square error of numbers; share of wrong classes
    coverage: float  # share of points inside their 95% interval; NaN for classes
    printed: float = np.nan  # a sum, in the paper's convention


NO_SCORE = Score(0, np.nan, np.nan, np.nan)


def score(prediction: Prediction, y: np.ndarray) -> Score:
    """The score of a prediction, given the observations."""
    if not np.isfinite(prediction.latent_mean).all():
        return NO_SCORE._replace(points=len(y))
    density = prediction.log_density(y)
    if prediction.likelihood.classes:
        wrong = np.argmax(prediction.probabilities, axis=-1) != y
        return Score(len(y), -density.mean(), wrong.mean(), np.nan, -density.sum() / _DRAWS)
    low, high = prediction.interval(0.95)
    return Score(
        len(y),
        -density.mean(),
        float(np.sqrt(np.mean((prediction.mean - y) ** 2))),
        float(np.mean((low <= y) & (y <= high))),
        _as_printed(prediction, y),
    )


def _as_printed(prediction: Prediction, y: np.ndarray) -> float:
    """The paper's NLPD: a sum over points, divided by its number of Monte Carlo draws.

    Its Gaussian density has unit noise, whatever the noise of the likelihood is.
    """
    if not isinstance(prediction.likelihood, Gaussian):
        return -prediction.log_density(y).sum() / _DRAWS
    total = prediction.latent_variance + 1.0
    residual = (y - prediction.latent_mean) ** 2 / total
    return float(np.sum(0.5 * np.log(2 * np.pi * total) + 0.5 * residual) / _DRAWS)


def score_of_moments(kind: str, y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Score:
    """The score of predictive means and variances of numbers, or of probabilities of class 1."""
    if kind == "binary":
        chance = np.clip(np.where(y > 0, mean, 1 - mean), 1e-300, None)
        return Score(len(y), -np.log(chance).mean(), float(np.mean((mean > 0.5) != y)), np.nan)
    residual = (y - mean) ** 2
    if not np.isfinite(residual).all():
        return NO_SCORE._replace(points=len(y))
    return Score(
        len(y),
        float(np.mean(0.5 * np.log(2 * np.pi * variance) + 0.5 * residual / variance)),
        float(np.sqrt(residual.mean())),
        float(np.mean(residual <= 1.959964**2 * variance)),
    )


def pooled(scores: list[Score]) -> Score:
    """The score of several sets of points together."""
    weights = np.array([s.points for s in scores], float)
    parts = np.array([s[1:4] for s in scores], float)
    shares = weights / weights.sum()
    nlpd, coverage = shares @ parts[:, 0], shares @ parts[:, 2]
    squared = any(np.isfinite(parts[:, 2]))  # numbers: their errors are roots of means
    error = np.sqrt(shares @ parts[:, 1] ** 2) if squared else shares @ parts[:, 1]
    return Score(
        int(weights.sum()),
        float(nlpd),
        float(error),
        float(coverage),
        sum(s.printed for s in scores),
    )
