"""What pictures see of a model, and its inputs as pictures show them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from streamgp.data.axes import Axis
from streamgp.data.schema import read_inputs
from streamgp.errors import DataError, problem

ALONG = 400  # points of a line


@runtime_checkable
class Model(Protocol):
    """The part of a model that a picture uses. `ContinualGP` has it."""

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, in order."""
        ...

    @property
    def inducing_points(self) -> tuple[np.ndarray, ...]:
        """The inducing points of each latent function."""
        ...

    @property
    def open_variance(self) -> tuple[float, ...]:
        """The part of each latent function's variance that its points leave open."""
        ...

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What each input column is."""
        ...

    @property
    def latest(self) -> Any:
        """The largest first input so far."""
        ...

    def suggest_budget(self) -> int:
        """How many inducing points would do."""
        ...

    def predict(self, x: Any, channel: str | None = None) -> Any:
        """Predict channels at some inputs."""
        ...


def named(model: Model, name: str | None) -> str:
    """The name of a channel, which may be left out if there is only one."""
    name = model.channels[0] if name is None and len(model.channels) == 1 else name
    if name not in model.channels:
        raise DataError(
            problem(f"a channel among {list(model.channels)}", repr(name), "Name one of them.")
        )
    return name


def start_of(model: Model) -> float:
    """The latest input, as the model's number, if there is one input that time may be."""
    if width_of(model) != 1:
        raise DataError(
            problem(
                "a model with one input column, which forecasts follow",
                "two",
                "Pass all inputs of the future to `predict`.",
            )
        )
    return float(read_inputs([model.latest], model.axes, "the picture")[0][0, 0])


def along(model: Model, x: Any, count: int) -> np.ndarray:
    """Inputs to draw along: those given, or so many over the range of the inducing points."""
    if x is not None:
        return np.ravel(clocked(x, model.axes))
    return spanned([clocked(points, model.axes) for points in model.inducing_points], count)[0]


def of_channel(given: Any, name: str) -> Any:
    """The channel's part of a dictionary by channel. Anything else is the channel's own."""
    return given.get(name) if isinstance(given, Mapping) else given


def width_of(model: Model) -> int:
    """The number of input columns, if such a model can be drawn."""
    if not model.inducing_points:
        raise DataError(problem("a model with data", "one without", "Call `update` before `plot`."))
    width = model.inducing_points[0].shape[1]
    if width > 2:
        raise DataError(
            problem(
                "a model with one or two input columns",
                f"{width}",
                "Predict along one of them and pass the prediction to `streamgp.plot.band`.",
            )
        )
    return width


def clocked(x: Any, axes: Sequence[Axis]) -> np.ndarray:
    """Inputs as the picture shows them. A single column of times is shown in local time."""
    if len(axes) != 1 or not axes[0].is_time:
        return np.asarray(x)
    is_number = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    numbers = x[:, 0] if is_number else read_inputs(x, tuple(axes), "the picture")[0][:, 0]
    return axes[0].on_clock(numbers)[:, None]


def on_clock(part: Any, axes: Sequence[Axis]) -> Any:
    """Observations, or the ends of a range, with their inputs as the picture shows them."""
    is_pair = isinstance(part, tuple | list) and len(part) == 2
    if not is_pair or len(axes) != 1 or not axes[0].is_time:
        return part
    if np.ndim(part[0]) == 0:
        return tuple(clocked(list(part), axes)[:, 0])
    return clocked(part[0], axes)[:, 0], part[1]


def spanned(seen: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """For each input, evenly spaced values over the range of what is shown and a little more."""
    shown = np.concatenate(seen)
    low, reach = shown.min(axis=0), np.ptp(shown, axis=0)
    share = np.linspace(-0.02, 1.02, count)
    return [a + share * b for a, b in zip(low, reach, strict=True)]
