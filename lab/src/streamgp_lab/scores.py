"""Scores of predictions on held-out data."""

from typing import NamedTuple

import numpy as np

from streamgp.likelihoods import Gaussian, class_count
from streamgp.prediction.prediction import Prediction

_DRAWS = 1000  # that the paper divides its sums by


class Score(NamedTuple):
    """Means over held-out points, and the paper's own figure, which is none."""

    points: int
    nlpd: float
    error: float  # share of wrong classes; root mean square error of numbers
    coverage: float  # of 95% intervals; NaN where there are classes
    printed: float  # in the paper's convention


def score(prediction: Prediction, y: np.ndarray) -> Score:
    """How well a prediction does on what was observed there."""
    classes = class_count(prediction.likelihood)
    if not np.isfinite(prediction.latent_mean).all():
        return Score(len(y), np.nan, np.nan, np.nan, np.nan)
    density = prediction.log_density(y)
    if classes:
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
    """The paper's NLPD: a sum over points, divided by its number of Monte-Carlo draws.

    Its Gaussian density has unit noise whatever the likelihood's is.
    """
    if not isinstance(prediction.likelihood, Gaussian):
        return -prediction.log_density(y).sum() / _DRAWS
    total = prediction.latent_variance + 1.0
    residual = (y - prediction.latent_mean) ** 2 / total
    return float(np.sum(0.5 * np.log(2 * np.pi * total) + 0.5 * residual) / _DRAWS)


def pooled(scores: list[Score]) -> Score:
    """The score of several sets of points together."""
    weights = np.array([s.points for s in scores], float)
    parts = np.array([s[1:4] for s in scores], float)
    shares = weights / weights.sum()
    nlpd, coverage = shares @ parts[:, 0], shares @ parts[:, 2]
    squared = any(np.isfinite(parts[:, 2]))  # numbers, whose errors are roots of means
    error = np.sqrt(shares @ parts[:, 1] ** 2) if squared else shares @ parts[:, 1]
    return Score(
        int(weights.sum()),
        float(nlpd),
        float(error),
        float(coverage),
        sum(s.printed for s in scores),
    )
