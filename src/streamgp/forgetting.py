"""Forgetting: how fast old observations lose their say, for worlds that drift."""

import dataclasses

from streamgp.errors import ConfigurationError, problem


@dataclasses.dataclass(frozen=True)
class Forgetting:
    """What is known of the past counts `factor` times as much after every update.

    With `per`, after every advance of the first input by that much instead: `Forgetting(0.5,
    per=24.0)` halves it a day where inputs are hours. The prior never fades, so predictions far
    from recent data go back to it.
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

    def share(self, advance: float) -> float:
        """What remains after one more update, the first input having advanced by so much."""
        if self.per is None:
            return self.factor
        return float(self.factor ** (max(advance, 0.0) / self.per))
