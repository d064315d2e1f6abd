"""Predictor: from a state and inputs to predictions, of any number of rows."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.frames import make_frame
from streamgp.data.schema import Inputs, Schema, read_inputs
from streamgp.errors import DataError, problem
from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.model.composition import Composition
from streamgp.numerics.blas_threads import on_one_blas_thread
from streamgp.numerics.linalg import square_root
from streamgp.prediction.checks import check_count
from streamgp.prediction.components import Components
from streamgp.prediction.prediction import Draw, Prediction, Scores, Tracked

_ROWS = 4096  # that a prediction takes at a time
_PARTS = 512  # the same, of components
_JOINT = 4096  # latent values that are drawn together: a matrix of that size is factorised


class Predictions(dict[str, Prediction]):
    """Predictions of several channels at the same inputs, by name."""

    def __init__(self, parts: dict[str, Prediction], draw: Draw):
        super().__init__(parts)
        self._draw = draw

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
        rng = np.random.default_rng(seed)
        sizes = [prediction.latent_mean.size for prediction in self.values()]
        parts = np.split(self._draw(rng, count), np.cumsum(sizes)[:-1], axis=1)
        return {
            name: prediction.observed(
                f.reshape(count, len(prediction), prediction.likelihood.latents), rng
            )
            for (name, prediction), f in zip(self.items(), parts, strict=True)
        }

    def to_frame(
        self, level: float = 0.95, *, calibrated: bool = False, backend: str = "pandas"
    ) -> Any:
        """A frame with one row per input.

        Args:
            level: The probability that the intervals hold.
            calibrated: Whether intervals are calibrated, as in `Prediction.interval`.
            backend: "pandas" or "polars".

        Returns:
            The inputs, and the columns of each channel's own frame, after its name.
        """
        columns: dict[str, Any] = {}
        for prediction in self.values():
            columns |= prediction.input_columns()
        for name, prediction in self.items():
            found = prediction.columns(level, calibrated=calibrated)
            columns |= {f"{name}_{what}": values for what, values in found.items()}
        return make_frame(columns, backend)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """A state, and what its channels and inputs are called."""

    learner: AnyLearner
    state: AnyState
    channels: tuple[str, ...]
    schema: Schema
    tracked: Mapping[str, Callable[..., Scores]] = dataclasses.field(default_factory=dict)

    def predict(self, x: Any, channel: str | None) -> Prediction | Predictions:
        """That channel at `x`, or all of them."""
        if channel is not None and not (isinstance(channel, str) and channel in self.channels):
            raise DataError(
                problem(f"a channel among {list(self.channels)}", repr(channel), "Check the name.")
            )
        names = self.channels if channel is None else (channel,)
        numbers, inputs, _ = read_inputs(x, self.schema.axes, "the prediction")
        parts = {name: self._prediction(numbers, inputs, name) for name in names}
        if len(names) == 1:
            return parts[names[0]]
        return Predictions(parts, JointDraw(self, numbers, tuple(names)))

    def _prediction(self, x: Float[np.ndarray, "N P"], inputs: Inputs, name: str) -> Prediction:
        index = self.channels.index(name)
        likelihood = self.state.plain.channels[index].likelihood
        latents = likelihood.latents
        pieces = [(np.zeros((0, latents)), np.zeros((0, latents, latents)))]  # x may be empty
        for begin in range(0, len(x), _ROWS):
            pieces.append(self.learner.predict(self.state, x[begin : begin + _ROWS], index))
        means, covariances = zip(*pieces, strict=True)
        return Prediction(
            likelihood.bare,
            np.concatenate(means),
            np.concatenate(covariances),
            inputs=inputs,
            labels=self.schema.labels.get(name, ()),
            draw=JointDraw(self, x, (name,)),
            tracked=self._tracked(name, x),
            decompose=Decomposition(self, x, inputs, index),
        )

    def _tracked(self, name: str, x: Float[np.ndarray, "N P"]) -> Tracked | None:
        known = self.tracked.get(name)
        return None if known is None else functools.partial(known, x=x)

    @on_one_blas_thread
    def components(self, x: Float[np.ndarray, "N P"], inputs: Inputs, channel: int) -> Components:
        """What the latent parameters of a channel are the sum of."""
        composition = Composition.of(self.state.plain, channel, self.schema.axes)
        latents, size = self.state.plain.channels[channel].likelihood.latents, composition.size
        nothing = np.zeros((0, latents, size)), np.zeros((0, latents, size, size))  # x may be empty
        parts = [
            self.learner.components(self.state, x[begin : begin + _PARTS], composition)
            for begin in range(0, len(x), _PARTS)
        ]
        means, covariances = zip(nothing, *parts, strict=True)
        return Components(
            composition.names,
            np.concatenate(means),
            np.concatenate(covariances),
            dict(zip(inputs.names, inputs.columns, strict=True)),
        )

    @on_one_blas_thread  # as what was computed before: a copy of a prediction draws the same
    def draw(
        self,
        x: Float[np.ndarray, "N P"],
        names: Sequence[str],
        rng: np.random.Generator,
        count: int,
    ) -> Float[np.ndarray, "S R"]:
        """Latent parameters of all rows of all those channels, drawn together."""
        index = [self.channels.index(name) for name in names]
        per_row = sum(self.state.plain.channels[d].likelihood.latents for d in index)
        if len(x) * per_row > _JOINT:
            raise DataError(
                problem(
                    f"at most {_JOINT // per_row} inputs in a joint draw",
                    f"{len(x)}",
                    "Draw at fewer inputs, or with `joint=False`.",
                )
            )
        mean, covariance = self.learner.predict_joint(self.state, x, index)
        return mean + rng.normal(size=(count, len(mean))) @ square_root(covariance).T


@dataclasses.dataclass(frozen=True)
class JointDraw:
    """Draws of latent parameters at some inputs of some channels, all of them together."""

    predictor: Predictor
    x: Float[np.ndarray, "N P"]
    names: tuple[str, ...]

    def __call__(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "S R"]:
        return self.predictor.draw(self.x, self.names, rng, count)


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """The components of a channel at some inputs, once they are asked for."""

    predictor: Predictor
    x: Float[np.ndarray, "N P"]
    inputs: Inputs
    channel: int

    def __call__(self) -> Components:
        return self.predictor.components(self.x, self.inputs, self.channel)
