"""What the baselines share: where models start from, rows of data, and predictions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float
from tinygp.kernels import Kernel

from streamgp.data import by_chunks
from streamgp.data.batch import Rows, join
from streamgp.errors import DataError, problem
from streamgp.inference.learner import Learner
from streamgp.likelihoods import Likelihood
from streamgp.model import specification
from streamgp.model.multitask import Generative
from streamgp.online import lifecycle
from streamgp.prediction.prediction import Prediction

Data = Mapping[str, tuple[np.ndarray, np.ndarray]]  # by channel: inputs and observations

T = TypeVar("T")

_ROWS = 4096  # that a prediction takes at a time


class Specification(NamedTuple):
    """What a baseline models: the same words as `ContinualGP`'s."""

    channels: Mapping[str, Likelihood]
    latents: int | Sequence[Kernel] | None = None
    seed: int = 0

    def start(self, data: Data) -> Generative:
        """The model of the data before any have been learned, on the scale of these."""
        asked = specification.Specification(dict(self.channels), self.latents, {}, self.seed)
        inputs = np.concatenate([matrix(x) for x, _ in data.values()])
        values = {name: np.asarray(y, float) for name, (_, y) in data.items()}
        state = lifecycle.begin(asked, Learner(None), inputs, values)
        return lifecycle.introduce(asked, state, values).model

    def rows(self, data: Data) -> Rows:
        """All observations, each with the index of its channel."""
        names = list(self.channels)
        return join(
            [(names.index(n), matrix(x), np.asarray(y, float)) for n, (x, y) in data.items()]
        )

    def position(self, channel: str | None) -> int:
        """Of a channel by name; of the only one without."""
        names = list(self.channels)
        if channel is None and len(names) == 1:
            return 0
        if channel not in names:
            raise DataError(problem(f"a channel among {names}", repr(channel), "Check the name."))
        return names.index(channel)


def learned(kept: T | None) -> T:
    """What has been kept of the past, if there is any."""
    if kept is None:
        raise DataError(
            problem("a model with data", "one without", "Call `update` before `predict`.")
        )
    return kept


class Scores(NamedTuple):
    """What samples showed that came one at a time: log p of each before it was learned."""

    log_predictive_rows: dict[str, np.ndarray]


def one_by_one(method: Any, name: str, x: np.ndarray, y: np.ndarray) -> Scores:
    """As many updates as there are samples, each scored first; the very first has no score."""
    x, y = matrix(x), np.asarray(y, float)
    scores = np.full(len(y), np.nan)
    for i in range(len(y)):
        if method.inducing_points:
            scores[i] = method.predict(x[i : i + 1], name).log_density(y[i])[0]
        method.update({name: (x[i : i + 1], y[i : i + 1])})
    return Scores({name: scores})


# Mean and covariance of the latent parameters of one channel, by its index, at some inputs.
Marginal = Callable[[Array, int], tuple[Array, Array]]


def prediction(model: Generative, marginal: Marginal, x: np.ndarray, index: int) -> Prediction:
    """What that channel will show at `x`, by a function for its latent parameters."""
    likelihood = paramax.unwrap(model.channels[index].likelihood)
    j = likelihood.latents
    mean, covariance = by_chunks(
        lambda rows: marginal(jnp.asarray(rows), index), matrix(x), most=_ROWS
    )
    return Prediction(likelihood, mean[:, :j], covariance[:, :j, :j])


def matrix(x: np.ndarray) -> Float[np.ndarray, "N P"]:
    """Inputs with a column each."""
    x = np.asarray(x, float)
    return x[:, None] if x.ndim == 1 else x
