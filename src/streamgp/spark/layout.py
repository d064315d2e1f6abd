"""Layout: what the columns of a Spark frame are, and times as numbers on the way to a model.

Spark hands Python its instants as the clocks of a worker show them. Here they travel as
microseconds since 1970 instead, so that no setting of a machine changes what a model learns.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgp.data import quantities
from streamgp.data.times import instants
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood

_EPOCH = "TIMESTAMP_NTZ'1970-01-01'"
_PACKED = {
    "instant": "unix_micros(`{}`)",
    "clock": f"timestampdiff(MICROSECOND, {_EPOCH}, CAST(`{{}}` AS TIMESTAMP_NTZ))",
    "number": "CAST(`{}` AS DOUBLE)",
}
_UNPACKED = {
    "instant": "timestamp_micros(`{}`)",
    "clock": f"timestampadd(MICROSECOND, `{{}}`, {_EPOCH})",
    "number": "`{}`",
}


@dataclasses.dataclass(frozen=True)
class Layout:
    """What the columns of a frame are.

    Attributes:
        keys: The columns that name the model.
        inputs: The input columns.
        kinds: What each input is: "instant", "clock" (a time without a zone) or "number".
        channel: The column with the channels' names, if the frame is long.
        value: The column with the values, if the frame is long.
    """

    keys: tuple[str, ...]
    inputs: tuple[str, ...]
    kinds: tuple[str, ...]
    channel: str | None = None
    value: str | None = None

    @classmethod
    def of(cls, frame: Any, key: Any, inputs: Any, channel: Any = None, value: Any = None) -> Any:
        """The layout of a Spark frame, by the names of its columns.

        Raises:
            DataError: If there is no such column, or an input holds neither numbers nor times.
        """
        keys, names = _names(key), _names(inputs)
        types = {field.name: field.dataType.typeName() for field in frame.schema.fields}
        asked = [*keys, *names, *(name for name in (channel, value) if name is not None)]
        missing = [name for name in asked if name not in types]
        if missing:
            raise DataError(
                problem(f"columns {asked}", f"a frame with {list(types)}", "Check their names.")
            )
        return cls(keys, names, tuple(_kind(name, types[name]) for name in names), channel, value)

    def packed(self, frame: Any) -> Any:
        """The frame with its times as microseconds since 1970."""
        return self._converted(frame, _PACKED)

    def unpacked(self, frame: Any) -> Any:
        """The inverse of `packed`, for the input columns of results."""
        return self._converted(frame, _UNPACKED)

    def _converted(self, frame: Any, expressions: Mapping[str, str]) -> Any:
        from pyspark.sql import functions

        for name, kind in zip(self.inputs, self.kinds, strict=True):
            frame = frame.withColumn(name, functions.expr(expressions[kind].format(name)))
        return frame

    def with_times(self, frame: Any) -> Any:
        """A pandas frame of packed rows with its times as times."""
        import pandas as pd

        for name, kind in zip(self.inputs, self.kinds, strict=True):
            if kind != "number":
                times = pd.to_datetime(frame[name], unit="us", utc=kind == "instant")
                frame = frame.assign(**{name: times})
        return frame

    @property
    def input_types(self) -> str:
        """The packed input columns, as a schema."""
        types = ("DOUBLE" if kind == "number" else "BIGINT" for kind in self.kinds)
        return ", ".join(f"`{name}` {kind}" for name, kind in zip(self.inputs, types, strict=True))

    def key_types(self, frame: Any) -> str:
        """The key columns, as a schema."""
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        return ", ".join(f"`{name}` {types[name]}" for name in self.keys)

    def batch(self, frame: Any) -> Any:
        """The columns of a pandas frame that a model learns from."""
        return self.with_times(frame.drop(columns=list(self.keys)))

    def observed(self, frame: Any, name: str, channels: Mapping[str, Likelihood]) -> np.ndarray:
        """Which rows of a pandas frame have an observation of a channel."""
        if self.value is not None:
            seen = frame[self.value].notna()
            return seen if self.channel is None else seen & (frame[self.channel] == name)
        others = [c for c in frame.columns if c not in (*self.keys, *self.inputs)]
        values = quantities.in_wide_frame(channels, others, None)[name]
        return frame[list(values[: quantities.value_count(channels[name])])].notna().any(axis=1)

    def repacked(self, x: np.ndarray) -> list[Any]:
        """Inputs of a prediction over one input, packed."""
        if self.kinds == ("number",):
            return x.tolist()
        plain = instants(x.tolist())[0] if x.dtype == object else x
        return plain.astype("M8[us]").astype(np.int64).tolist()

    @property
    def arguments(self) -> dict[str, Any]:
        """What `ContinualGP.update` is told of the columns."""
        return {"inputs": list(self.inputs), "channel": self.channel, "value": self.value}


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _kind(name: str, kind: str) -> str:
    if kind == "timestamp":
        return "instant"
    if kind in ("timestamp_ntz", "date"):
        return "clock"
    numbers = ("byte", "short", "integer", "long", "float", "double", "decimal")
    if kind.split("(")[0] in numbers:
        return "number"
    raise DataError(
        problem(f"numbers or times in the column {name!r}", f"the type {kind}", "Cast it first.")
    )
