"""What pictures see of a model, and its inputs as pictures show them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from streamgp.data import columns, frames
from streamgp.data.axes import Axis
from streamgp.data.schema import known_names, read_frame_inputs, read_inputs
from streamgp.errors import DataError, problem
from streamgp.plot import grids, style

_MARGIN = 0.02  # of the range of what is shown, on either side of it


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
    def kept_rows(self) -> int:
        """How many rows are kept: these are then the points."""
        ...

    @property
    def open_variance(self) -> tuple[float, ...]:
        """The part of each latent function's variance that its points leave open."""
        ...

    @property
    def shortest_waves(self) -> tuple[float, ...]:
        """The length of the shortest wave along each input, or infinity."""
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


def axis_label(axis: Axis, plain: str) -> str:
    """What stands beside an axis: the name of the input, and the zone of its times.

    Args:
        axis: What the input holds.
        plain: What stands there if it is numbers without a name.
    """
    name = None if axis.name == frames.INDEX else axis.name
    if name is None:
        name = "time" if axis.is_time else plain
    return f"{name} ({axis.zone})" if axis.zone else str(name)


def along(model: Model, x: Any, seen: Sequence[np.ndarray] = ()) -> np.ndarray:
    """Inputs to draw along: those given, or some over the range of what is shown.

    There are enough for the shortest wave and, as functions can turn at every inducing point, as
    many as these.

    Args:
        model: A model of one input.
        x: The inputs, or None.
        seen: Columns of inputs that are shown beside the inducing points.
    """
    if x is not None:
        return np.ravel(clocked(x, model.axes))
    points = [clocked(of_latent, model.axes) for of_latent in model.inducing_points]
    least = max(grids.ALONG, *map(len, points))
    (wave,) = model.shortest_waves
    return spanned([*points, *seen], (wave,), least, grids.MOST)[0]


def across(model: Model, seen: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The two sides of a map over the range of what is shown."""
    points = [clocked(of_latent, model.axes) for of_latent in model.inducing_points]
    sides = (grids.ACROSS, grids.MOST_ACROSS)
    return spanned([*points, *seen], model.shortest_waves, *sides)


def of_channel(given: Any, name: str, axes: Sequence[Axis]) -> Any:
    """The channel's part of a dictionary by channel, or of a wide frame, as (x, y).

    Anything else is the channel's own.
    """
    if isinstance(given, Mapping):
        return given.get(name)
    return _of_frame(given, name, tuple(axes)) if frames.is_frame(given) else given


def _of_frame(frame: Any, name: str, axes: tuple[Axis, ...]) -> Any:
    if name not in frames.names(frame):
        return None
    inputs = frames.input_columns(frame, None, known_names(axes))
    x = read_frame_inputs(frame, inputs, axes, "the picture")[0]
    column = columns.read(frames.pick(frame, name), f"observations of {name!r}")
    seen = ~column.missing
    each = [axis.values(numbers[seen]) for axis, numbers in zip(axes, x.T, strict=True)]
    return each[0] if len(each) == 1 else _stacked(each), column.values[seen]


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
    """Inputs as the picture shows them: times as the clocks of their zone do.

    A single column of times stays one of times. Of two columns, both are numbers: times are those
    of matplotlib, in days.
    """
    if not any(axis.is_time for axis in axes):
        return np.asarray(x)
    is_number = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    numbers = x if is_number else read_inputs(x, tuple(axes), "the picture")[0]
    columns = [axis.on_clock(column) for axis, column in zip(axes, numbers.T, strict=True)]
    return np.stack(columns if len(axes) == 1 else list(map(style.as_numbers, columns)), axis=-1)


def side(x: Any, axis: Axis) -> np.ndarray:
    """Values of one of two inputs as a map shows them."""
    return style.as_numbers(clocked(x, (axis,)).ravel()) if axis.is_time else np.asarray(x, float)


def off_map(grid: Float[np.ndarray, "N 2"], axes: Sequence[Axis]) -> np.ndarray:
    """Points of a map as inputs for `predict`: the inverse of `clocked` for two columns."""
    pairs = zip(axes, grid.T, strict=True)
    return _stacked([a.off_clock(_as_times(c)) if a.is_time else c for a, c in pairs])


def on_clock(part: Any, axes: Sequence[Axis]) -> Any:
    """Observations, or the ends of a range, with their inputs as the picture shows them."""
    is_pair = isinstance(part, tuple | list) and len(part) == 2
    if not is_pair or not any(axis.is_time for axis in axes):
        return part
    if np.ndim(part[0]) == 0:
        return tuple(clocked(list(part), axes)[:, 0])
    x = clocked(part[0], axes)
    return x[:, 0] if len(axes) == 1 else x, part[1]


def spanned(
    seen: Sequence[np.ndarray],
    waves: Sequence[float],
    least: int,
    most: int,
) -> list[np.ndarray]:
    """For each input, values over the range of what is shown and a little more.

    Args:
        seen: Inputs that are shown, a column for each of the model's.
        waves: The length of the shortest wave along each.
        least: The fewest values of an input.
        most: The most of them.
    """
    shown = np.concatenate(seen)
    found = []
    for column, wave in zip(shown.T, waves, strict=True):
        low, reach = column.min(), np.ptp(column)
        length = reach / np.timedelta64(1, "D") if style.is_dates(column) else float(reach)
        inner = grids.shares((1 + 2 * _MARGIN) * length / wave, least, most)
        found.append(low + (inner * (1 + 2 * _MARGIN) - _MARGIN) * reach)
    return found


def _as_times(days: Float[np.ndarray, " N"]) -> np.ndarray:
    from matplotlib.dates import num2date

    return np.asarray([time.replace(tzinfo=None) for time in num2date(days)], "M8[us]")


def _stacked(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns as a table, also where some are times and others are numbers."""
    kinds = {column.dtype.kind for column in columns}
    return np.stack([c if len(kinds) == 1 else c.astype(object) for c in columns], axis=-1)


def name_of_points(model: Model) -> str:
    """What marks of a model's points stand for."""
    return "kept rows" if model.kept_rows else "inducing points"
