"""A constant mean function: the level of a channel."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from streamgp.data.axes import Axis
from streamgp.model.means.base import Mean, Spread, check_spread
from streamgp.registry import storable_as

LEVEL = "level"  # what a constant, and the offset that it starts from, is called


@storable_as("streamgp.mean.Constant")
@dataclasses.dataclass(frozen=True)
class Constant(Mean):
    """A level that the data tell, and that predictions far from all data return to.

    Args:
        spread: The prior standard deviation of the level around the mean of the channel's first
            data, in units of the latent parameter; positive. By default it is broad: a hundred
            times the spread of the first data for channels with real values, and 3 for latent
            parameters behind a logarithm or a logit.

    Raises:
        ConfigurationError: If the spread is not positive.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian(), mean=sgp.Constant())
        >>> x = np.linspace(0, 50, 200)
        >>> for batch in np.split(x, 4):
        ...     report = model.update(batch, 300 + 4 * np.sin(batch))
        >>> round(float(model.predict([500.0]).mean[0]), -1)
        300.0
    """

    spread: float | None = None

    def __post_init__(self) -> None:
        check_spread(self.spread)

    def __call__(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N B"]:
        return np.ones((len(x), 1))

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return (self.spread,)

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        return (LEVEL,)
