"""Tables with one column per channel: their likelihoods, what they observe, what is predicted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp import likelihoods
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.likelihoods import Likelihood
from streamgp.prediction.prediction import Prediction

# Those that can be asked for by name: a column of numbers tells them all they need.
_NAMED = (
    likelihoods.Bernoulli,
    likelihoods.Beta,
    likelihoods.Exponential,
    likelihoods.Gamma,
    likelihoods.Gaussian,
    likelihoods.HeteroscedasticGaussian,
    likelihoods.LogNormal,
    likelihoods.NegativeBinomial,
    likelihoods.Poisson,
    likelihoods.StudentT,
)

OneLikelihood = Likelihood | str
Likelihoods = OneLikelihood | Sequence[OneLikelihood] | Mapping[str, OneLikelihood]


def channel_names(columns: Sequence[Any]) -> tuple[str, ...]:
    """The channels of the columns of y.

    Args:
        columns: The names of the columns.

    Returns:
        The names that are text, as they are; y0, y1 and so on for the others, or for all columns
        if two channels would have the same name.
    """
    counted = tuple(f"y{d}" for d in range(len(columns)))
    named = tuple(c if isinstance(c, str) else y for c, y in zip(columns, counted, strict=True))
    return named if len(set(named)) == len(named) else counted


def check_columns(columns: Iterable[Any], channels: tuple[str, ...], what: str) -> None:
    """Raise where a later table has other columns than the first one.

    Args:
        columns: Of the later table.
        channels: Of the model.
        what: What a column is called.
    """
    given = list(columns)
    if channel_names(given) != channels:
        raise DataError(
            problem(
                f"{what} {list(channels)}, as in `fit`",
                str(given),
                f"Fill {what} that were not observed with NaN.",
            )
        )


def channels_of(names: Sequence[str], given: Likelihoods) -> dict[str, Likelihood]:
    """The likelihood of each column.

    Args:
        names: The channels, one per column.
        given: A likelihood or its name for all columns, a list of one per column, or a dictionary
            by channel.

    Returns:
        Likelihoods by channel, in the order of the columns.

    Raises:
        ConfigurationError: If there is not one likelihood per column, or one is not known or does
            not suit a column of numbers.
    """
    if isinstance(given, Mapping):
        each, suits = [given.get(name) for name in names], set(given) == set(names)
    else:
        each = [given] * len(names) if isinstance(given, Likelihood | str) else list(given)
        suits = len(each) == len(names)
    if not suits:
        raise ConfigurationError(
            problem(
                f"a likelihood for each of {list(names)}",
                repr(given),
                "Give one for all, a list of one per column, or a dictionary by column.",
            )
        )
    return {name: _likelihood(one, name) for name, one in zip(names, each, strict=True)}


def _likelihood(given: Any, name: str) -> Likelihood:
    if isinstance(given, str):
        known = {kind.__name__.casefold(): kind for kind in _NAMED}
        kind = known.get(given.replace("_", "").casefold())
        if kind is None:
            raise ConfigurationError(
                problem(
                    f"a likelihood among {[kind.__name__ for kind in _NAMED]}",
                    repr(given),
                    "Check the name, or pass an instance, such as `Gaussian()`.",
                )
            )
        return kind()
    one_number = (
        isinstance(given, Likelihood)
        and given.observation_dim == 1
        and given.ordered
        and given.classes <= 2
    )
    if not one_number:
        raise ConfigurationError(
            problem(
                f"a likelihood of single numbers for column {name!r}",
                repr(given),
                "Pass one such as `Gaussian()` or `Poisson()`; use `ContinualGP` for classes and "
                "for observations of several numbers.",
            )
        )
    return given


def observed(
    names: Sequence[str], x: Any, y: Float[np.ndarray, "N D"]
) -> dict[str, tuple[Any, Float[np.ndarray, " _"]]]:
    """The rows of each channel that were observed.

    Args:
        names: The channels, one per column of y.
        x: Inputs, an array or a frame, one row per row of y.
        y: Observations, NaN where nothing was observed.

    Returns:
        Pairs of inputs and observations by channel, as `ContinualGP.update` takes them.
    """
    return {
        name: (x[~np.isnan(column)], column[~np.isnan(column)])
        for name, column in zip(names, y.T, strict=True)
    }


def means(predictions: Sequence[Prediction]) -> Float[np.ndarray, "N D"]:
    """The expected observations, one column per channel."""
    return np.stack([prediction.mean for prediction in predictions], axis=-1)


def variances(predictions: Sequence[Prediction]) -> Float[np.ndarray, "N D"]:
    """The variances of observations, one column per channel."""
    return np.stack([prediction.variance for prediction in predictions], axis=-1)


def quantiles(predictions: Sequence[Prediction], levels: Sequence[float]) -> np.ndarray:
    """Quantiles of observations: for each channel, one column per level."""
    return np.stack([p.quantile(level) for p in predictions for level in levels], axis=-1)
