"""Forgetting: how fast old observations lose their say, for worlds that drift."""

import dataclasses

from streamgp.errors import ConfigurationError, problem
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True)
class Forgetting:
    """What is known of the past counts `factor` times as much after every update.

    The prior never fades, so predictions far from recent data go back to it.

    Args:
        factor: Above 0 and at most 1, which forgets nothing.
        per: If given, the past fades by `factor` whenever the first input advances by that much,
            instead of at every update. `Forgetting(0.5, per=24.0)` halves it every day where
            inputs are hours.

    Raises:
        ConfigurationError: If a value is out of range.
    """

    factor: float = 1.0
    per: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.factor <= 1 and (self.per is None or self.per > 0)):
            raise ConfigurationError(
                problem(
                    "a factor above 0 and at most 1, and `per` None or positive",
                    f"factor={self.factor}, per={self.per}",
                    "1 forgets nothing; 0.98 fades to a half in 34 updates.",
                )
            )

    def left_after(self, advance: float) -> float:
        """The part of the past that counts after one more update.

        Args:
            advance: How far the first input has moved on since the update before.
        """
        if self.per is None:
            return self.factor
        return float(self.factor ** (max(advance, 0.0) / self.per))
