"""Predictor: from a state and inputs to predictions, of any number of rows."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float, Int

from streamgp.data import by_chunks, row_bucket
from streamgp.data.frames import make_frame
from streamgp.data.schema import Inputs, Schema, read_inputs
from streamgp.errors import DataError, problem
from streamgp.inference.learner import Learner, State
from streamgp.numerics.compiling import compiled
from streamgp.numerics.linalg import square_root
from streamgp.numerics.precision import double_precision
from streamgp.prediction.prediction import Draw, Prediction, check_count

_predict = compiled(Learner.predict)
_predict_joint = compiled(Learner.predict_joint)

_ROWS = 4096  # that a prediction takes at a time
_JOINT = 4096  # latent values that are drawn together: a matrix of that size is factorised


class Predictions(dict[str, Prediction]):
    """Predictions of several channels at the same inputs, by name."""

    def __init__(self, parts: dict[str, Prediction], draw: Draw):
        super().__init__(parts)
        self._draw = draw

    @double_precision
    def sample(
        self, count: int = 1, *, seed: int = 0, joint: bool = False
    ) -> dict[str, np.ndarray]:
        """Draws of every channel.

        Args:
            count: How many draws.
            seed: Of the random numbers.
            joint: Whether each draw is of one function over all inputs and channels, instead of
                independent between them.

        Returns:
            An array (count, N) for each channel, by name.
        """
        if not joint:
            return {n: p.sample(count, seed=seed + i) for i, (n, p) in enumerate(self.items())}
        check_count(count)
        key_f, *keys = jax.random.split(jax.random.key(seed), 1 + len(self))
        parts = jnp.split(self._draw(key_f, count), len(self), axis=1)
        return {
            name: prediction.observed(f[..., : prediction.likelihood.latents], key)
            for (name, prediction), f, key in zip(self.items(), parts, keys, strict=True)
        }

    def to_frame(self, level: float = 0.95, *, backend: str = "pandas") -> Any:
        """A frame with one row per input.

        Args:
            level: The probability that the intervals hold.
            backend: "pandas" or "polars".

        Returns:
            The inputs, and the columns of each channel's own frame, after its name.
        """
        columns: dict[str, Any] = {}
        for prediction in self.values():
            columns |= prediction.input_columns()
        for name, prediction in self.items():
            columns |= {f"{name}_{what}": v for what, v in prediction.columns(level).items()}
        return make_frame(columns, backend)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """A state, and what its channels and inputs are called."""

    learner: Learner
    state: State
    channels: tuple[str, ...]
    schema: Schema

    def predict(self, x: Any, channel: str | None) -> Prediction | Predictions:
        """That channel at `x`, or all of them."""
        if channel is not None and not (isinstance(channel, str) and channel in self.channels):
            raise DataError(
                problem(f"a channel among {list(self.channels)}", repr(channel), "Check the name.")
            )
        names = self.channels if channel is None else (channel,)
        numbers, inputs, _ = read_inputs(x, self.schema.axes, "the prediction")
        latents = self._latents(numbers, names)
        parts = {
            name: self._prediction(numbers, inputs, name, *moments)
            for name, moments in zip(names, latents, strict=True)
        }
        if len(names) == 1:
            return parts[names[0]]
        return Predictions(parts, JointDraw(self, numbers, tuple(names)))

    def _latents(
        self, x: Float[np.ndarray, "N P"], names: Sequence[str]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Mean and covariance of each channel's latent parameters, from one program."""
        rows, index = self._rows(x, names)
        mean, covariance = by_chunks(
            lambda *chunk: _predict(self.learner, self.state, *chunk), rows, index, most=_ROWS
        )
        parts = np.split(mean, len(names)), np.split(covariance, len(names))
        return list(zip(*parts, strict=True))

    def _rows(
        self, x: Float[np.ndarray, "N P"], names: Sequence[str]
    ) -> tuple[Float[np.ndarray, "R P"], Int[np.ndarray, " R"]]:
        """The inputs, repeated for each channel, and the channel of each row."""
        index = [self.channels.index(name) for name in names]
        return np.tile(x, (len(names), 1)), np.repeat(index, len(x))

    def _prediction(
        self,
        x: Float[np.ndarray, "N P"],
        inputs: Inputs,
        name: str,
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
    ) -> Prediction:
        index = self.channels.index(name)
        likelihood = paramax.unwrap(self.state.model.channels[index].likelihood)
        j = likelihood.latents
        return Prediction(
            likelihood,
            mean[:, :j],
            covariance[:, :j, :j],
            inputs=inputs,
            labels=self.schema.labels.get(name, ()),
            draw=JointDraw(self, x, (name,)),
        )

    def draw(
        self, x: Float[np.ndarray, "N P"], names: Sequence[str], key: Array, count: int
    ) -> Float[Array, "S R J"]:
        """Latent parameters of all rows of all those channels, drawn together."""
        tiled, index = self._rows(x, names)
        latents, rows = paramax.unwrap(self.state.model).most_latents, len(index)
        if rows * latents > _JOINT:
            raise DataError(
                problem(
                    f"at most {_JOINT // latents} inputs times channels in a joint draw",
                    f"{rows}",
                    "Draw at fewer inputs, or with `joint=False`.",
                )
            )
        size = rows * latents
        mean, covariance = predict_joint(self.learner, self.state, tiled, index)
        half = square_root(covariance.reshape(size, size))
        noise = jax.random.normal(key, (count, size))
        return mean + (noise @ half.T).reshape(count, rows, latents)


@dataclasses.dataclass(frozen=True)
class JointDraw:
    """Draws of latent parameters at some inputs of some channels, all of them together."""

    predictor: Predictor
    x: Float[np.ndarray, "N P"]
    names: tuple[str, ...]

    def __call__(self, key: Array, count: int) -> Float[Array, "S R J"]:
        return self.predictor.draw(self.x, self.names, key, count)


def predict_joint(
    learner: Learner, state: State, x: Float[np.ndarray, "N P"], channel: Int[np.ndarray, " N"]
) -> tuple[Float[Array, "N J"], Float[Array, "N J N J"]]:
    """`Learner.predict_joint` of any number of rows, compiled once per padded size."""
    rows = len(x)
    padded, index = np.zeros((row_bucket(rows), x.shape[1])), np.zeros(row_bucket(rows), int)
    padded[:rows], index[:rows] = x, channel
    mean, covariance = _predict_joint(learner, state, jnp.asarray(padded), jnp.asarray(index))
    return mean[:rows], covariance[:rows, :, :rows]
