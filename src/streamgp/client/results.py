"""Results of a service, with the names that results of a model have."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class RemoteReport(Mapping[str, Any]):
    """What an update did, as the service tells it: a mapping, with its parts as attributes too.

    Examples:
        >>> report = RemoteReport({"update": 3, "repeated": False})
        >>> report.update, report["repeated"]
        (3, False)
    """

    def __init__(self, parts: dict[str, Any]):
        self._parts = parts

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def __iter__(self) -> Any:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_parts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        return f"RemoteReport({self._parts})"


class RemotePrediction:
    """What a service predicts of one channel.

    Attributes:
        x: The inputs, by column.
        columns: What is predicted, by name: `mean`, `std`, `lower` and `upper`, or, of a channel
            with classes, their probabilities and `label`.
        quantiles: Further quantiles that were asked for, by level.
        components: `mean` and `std` of each component of f, by name, if they were asked for.
    """

    def __init__(self, inputs: dict[str, list[Any]], columns: dict[str, Any]):
        self.x = {name: np.asarray(values) for name, values in inputs.items()}
        rest = {n: values for n, values in columns.items() if n not in ("quantiles", "components")}
        self.columns = {name: _numbers(values) for name, values in rest.items()}
        asked = columns.get("quantiles", {})
        self.quantiles = {float(level): _numbers(values) for level, values in asked.items()}
        self.components = {
            name: {what: np.asarray(values, float) for what, values in part.items()}
            for name, part in columns.get("components", {}).items()
        }

    def __len__(self) -> int:
        return len(next(iter(self.x.values())))

    @property
    def mean(self) -> np.ndarray:
        """The mean of a new observation at each input."""
        return self.columns["mean"]

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of a new observation at each input."""
        return self.columns["std"]

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the interval at the level that was asked for."""
        return self.columns["lower"], self.columns["upper"]

    def to_frame(self) -> Any:
        """A pandas frame with one row per input. Times are read as times."""
        import pandas as pd

        inputs = {
            name: pd.to_datetime(pd.Series(values)) if values.dtype.kind == "U" else values
            for name, values in self.x.items()
        }
        quantiles = {f"quantile_{level:g}": each for level, each in self.quantiles.items()}
        return pd.DataFrame({**inputs, **self.columns, **quantiles})


def _numbers(values: list[Any]) -> np.ndarray:
    """A column; null, which stands for a number that JSON lacks, is NaN."""
    if any(isinstance(value, str) for value in values):
        return np.asarray(values, object)
    return np.asarray([np.nan if value is None else value for value in values], float)
