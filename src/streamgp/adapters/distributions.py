"""Predictions as distributions of skpro."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from skpro.distributions import Binomial, Empirical, LogNormal, Normal
from skpro.distributions.base import BaseDistribution

from streamgp import likelihoods
from streamgp.adapters import tables
from streamgp.prediction.prediction import Prediction

DRAWS = 1000  # of each value that has no closed form


def distribution(
    predictions: Sequence[Prediction], index: pd.Index, columns: Any, seed: int
) -> BaseDistribution:
    """The predictive distribution of a table, one column per channel.

    Args:
        predictions: Of each channel at the same inputs.
        index: The rows of the table.
        columns: The names of its columns.
        seed: Of the draws.

    Returns:
        A `Normal` if all channels are Gaussian, a `LogNormal` if all are log-normal, a `Binomial`
        of one trial if all are Bernoulli. Otherwise an `Empirical` of draws.
    """
    (kind, *others) = {type(prediction.likelihood) for prediction in predictions}
    if others or kind not in _CLOSED:
        return _empirical(predictions, index, columns, seed)
    return _CLOSED[kind](predictions, index=index, columns=columns)


def _normal(predictions: Sequence[Prediction], **labels: Any) -> Normal:
    std = np.sqrt(tables.variances(predictions))
    return Normal(mu=tables.means(predictions), sigma=std, **labels)


def _log_normal(predictions: Sequence[Prediction], **labels: Any) -> LogNormal:
    mean = [prediction.latent_mean for prediction in predictions]
    variance = [p.latent_variance + _noise(p) ** 2 for p in predictions]
    return LogNormal(mu=_columns(mean), sigma=np.sqrt(_columns(variance)), **labels)


def _noise(prediction: Prediction) -> float:
    assert isinstance(prediction.likelihood, likelihoods.LogNormal)
    return float(np.asarray(prediction.likelihood.noise))


def _one_trial(predictions: Sequence[Prediction], **labels: Any) -> Binomial:
    return Binomial(n=1, p=np.clip(tables.means(predictions), 0.0, 1.0), **labels)


def _empirical(
    predictions: Sequence[Prediction], index: pd.Index, columns: Any, seed: int
) -> Empirical:
    # A seed for each column: with a common one, equal columns would have equal draws.
    draws = [p.sample(DRAWS, seed=seed + d) for d, p in enumerate(predictions)]
    table = pd.DataFrame(
        np.stack(draws, axis=-1).reshape(-1, len(draws)).astype(float),
        index=pd.MultiIndex.from_product([range(DRAWS), index]),
        columns=columns,
    )
    return Empirical(table, index=index, columns=pd.Index(columns), skip_init_sorted=True)


def _columns(values: Sequence[Float[np.ndarray, " N"]]) -> Float[np.ndarray, "N D"]:
    return np.stack(values, axis=-1)


_CLOSED: dict[type, Callable[..., BaseDistribution]] = {
    likelihoods.Gaussian: _normal,
    likelihoods.LogNormal: _log_normal,
    likelihoods.Bernoulli: _one_trial,
}
