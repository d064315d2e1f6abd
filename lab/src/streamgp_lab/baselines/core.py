"""What the baselines share: initial models, predictions, and samples that come one at a time."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from streamgp.errors import DataError, problem
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.parameters import fixed, replaced, unwrap
from streamgp.prediction.prediction import Prediction
from streamgp_lab.problem import Data, matrix

T = TypeVar("T")

_ROWS = 4096  # the largest number of inputs that are predicted together


def start_model(specification: Specification, data: Data) -> MultiTaskGP:
    """The model before it has learned any data, on the scale of these data."""
    inputs = np.concatenate([matrix(x) for x, _ in data.values()])
    values = {name: np.asarray(y, float) for name, (_, y) in data.items()}
    model = specification.model(inputs, next(iter(values.values())))
    channels = [
        specification.channel(name, values[name], inputs) if name in values else blank
        for name, blank in zip(specification.names, model.channels, strict=True)
    ]
    return replaced(model, channels=tuple(channels))


def literal_model(specification: Specification, data: Data) -> MultiTaskGP:
    """The same for published methods: levels and scales stay where these data put them."""
    model = start_model(dataclasses.replace(specification, mean=None), data)
    channels = [replaced(c, scale=fixed(c.scale.value)) for c in model.channels]
    return replaced(model, channels=tuple(channels))


def position(specification: Specification, channel: str | None) -> int:
    """The index of a channel. The name may be left out if there is only one."""
    names = specification.names
    if channel is None and len(names) == 1:
        return 0
    if channel not in names:
        raise DataError(problem(f"a channel among {names}", repr(channel), "Check the name."))
    return names.index(channel)


def learned(kept: T | None) -> T:
    """What a method has kept of past data. Raises if there were none."""
    if kept is None:
        raise DataError(
            problem("a model with data", "one without", "Call `update` before `predict`.")
        )
    return kept


class SampleScores(NamedTuple):
    """The log density of samples that came one at a time, each before it was learned."""

    log_predictive_rows: dict[str, np.ndarray]


def one_by_one(method: Any, name: str, x: np.ndarray, y: np.ndarray) -> SampleScores:
    """One update per sample. Each is scored first, except the very first sample."""
    x, y = matrix(x), np.asarray(y, float)
    scores = np.full(len(y), np.nan)
    for i in range(len(y)):
        if method.inducing_points:
            scores[i] = method.predict(x[i : i + 1], name).log_density(y[i])[0]
        method.update({name: (x[i : i + 1], y[i : i + 1])})
    return SampleScores({name: scores})


# From inputs to mean and covariance of the latent parameters of a channel.
Marginal = Callable[
    [Float[np.ndarray, "N P"]], tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]
]


def prediction(model: MultiTaskGP, marginal: Marginal, x: np.ndarray, index: int) -> Prediction:
    """The prediction of a channel at `x`, from a function for its latent parameters."""
    inputs = matrix(x)
    pieces = [
        marginal(inputs[begin : begin + _ROWS]) for begin in range(0, max(len(inputs), 1), _ROWS)
    ]
    means, covariances = zip(*pieces, strict=True)
    likelihood = unwrap(model.channels[index].likelihood).bare
    return Prediction(likelihood, np.concatenate(means), np.concatenate(covariances))
