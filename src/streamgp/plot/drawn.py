"""The pictures that a model draws of itself."""

from typing import Any

import numpy as np

from streamgp.plot import fans, panels, summands
from streamgp.plot.shown import Model


class Drawn:
    """A model with methods for its pictures. They need matplotlib."""

    def plot(self: Model, channel: str | None = None, **options: Any) -> np.ndarray:
        """Draw channels over one or two inputs. It needs matplotlib.

        Args:
            channel: The name of one channel; by default all of them, each on axes of its own. Over
                two inputs, these are a pair: the mean, and the uncertainty.
            **options: Those of `streamgp.plot.channels`: `x`, `data`, `past`, `level`, `value`,
                `inducing`, `note`, `legend`, `ax`.

        Returns:
            An array of the axes, one per channel that was drawn; (channels, 2) over two inputs,
            unless `value` or `ax` asks for one map.
        """
        return panels.channels(self, channel, **options)

    def plot_forecast(
        self: Model, ahead: Any, every: Any = None, channel: str | None = None, **options: Any
    ) -> np.ndarray:
        """Draw fan charts: the recent past, and what comes after the latest input.

        Args:
            ahead: How far to go: a duration such as "2D" if inputs are times, a floating-point
                number in their units otherwise; or a number of steps (an integer).
            every: The length of a step. It may be left out if `ahead` is a length.
            channel: The name of one channel; by default all of them, each on axes of its own.
            **options: Those of `streamgp.plot.forecast`: `back`, `data`, `later`, `levels`,
                `calibrated`, `legend`, `ax`.

        Returns:
            An array of the axes, one per channel that was drawn.

        Raises:
            DataError: If the model has no data or several inputs, or the arguments do not fit it.
            ConfigurationError: If a length makes no sense for the inputs.
            ImportError: If matplotlib is missing.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian(), seasons=[7])
            >>> day = np.arange(60.0)
            >>> report = model.update(day, np.sin(2 * np.pi * day / 7))
            >>> len(model.plot_forecast(14.0, calibrated=True))
            1
        """
        return fans.forecasts(self, ahead, every, channel, **options)

    def plot_components(self: Model, channel: str | None = None, **options: Any) -> np.ndarray:
        """Draw what a channel's latent parameter is the sum of, one panel under the other.

        Args:
            channel: The name of the channel. It may be left out if there is only one.
            **options: Those of `streamgp.plot.components`: `x`, `ahead`, `every`,
                `parts`, `level`, `ax`.

        Returns:
            An array of the axes, that of the sum first.

        Raises:
            DataError: If the model has no data or several inputs, or the arguments do not fit it.
            ImportError: If matplotlib is missing.
        """
        return summands.components(self, channel, **options)
