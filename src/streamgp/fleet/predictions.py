"""FleetPredictions: what the models of a fleet say, by key."""

from collections.abc import Hashable, Mapping
from typing import Any

from streamgp.data.columns import loaded
from streamgp.errors import DataError, problem


class FleetPredictions(dict[Hashable, Any]):
    """A `Prediction` of each key, or `Predictions` where models have several channels.

    Attributes:
        errors: What went wrong, by key.
    """

    def __init__(self, parts: Mapping[Hashable, Any], errors: Mapping[Hashable, Exception]):
        super().__init__(parts)
        self.errors = dict(errors)

    def to_frame(self, level: float = 0.95, *, key: str = "key", backend: str = "pandas") -> Any:
        """The frames of all keys, one after the other.

        Args:
            level: The probability that the intervals hold.
            key: What the column of the keys is called.
            backend: "pandas" or "polars".

        Returns:
            One row per key and input: the key, and the columns of the prediction's own frame.

        Raises:
            DataError: If there is no prediction at all.
        """
        if not self:
            raise DataError(
                problem("at least one prediction", "none", "`errors` says what went wrong.")
            )
        frames = [part.to_frame(level, backend=backend) for part in self.values()]
        if isinstance(frames[0], loaded("pandas", "DataFrame")):
            return _pandas(frames, list(self), key)
        return _polars(frames, list(self), key)


def _pandas(frames: list[Any], keys: list[Hashable], name: str) -> Any:
    import pandas

    whole = pandas.concat(frames, ignore_index=True)
    column = [key for key, frame in zip(keys, frames, strict=True) for _ in range(len(frame))]
    whole.insert(0, name, column)
    return whole


def _polars(frames: list[Any], keys: list[Hashable], name: str) -> Any:
    import polars

    column = [key for key, frame in zip(keys, frames, strict=True) for _ in range(len(frame))]
    whole = polars.concat(frames, how="vertical_relaxed")
    return whole.insert_column(0, polars.Series(name, column))
