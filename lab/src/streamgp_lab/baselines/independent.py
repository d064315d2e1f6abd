"""Independent models: one continual GP per channel."""

from collections.abc import Mapping

import numpy as np

from streamgp.gp import ContinualGP
from streamgp.prediction.prediction import Prediction
from streamgp_lab.problem import Data


class Independent:
    """Channels that share nothing."""

    def __init__(self, models: Mapping[str, ContinualGP]):
        self._models = dict(models)

    @property
    def inducing_points(self) -> tuple[np.ndarray, ...]:
        return tuple(z for model in self._models.values() for z in model.inducing_points)

    def update(self, data: Data) -> None:
        """Update the model of each channel in the batch."""
        for name, (x, y) in data.items():
            self._models[name].update(x, y)

    def predict(self, x: np.ndarray, channel: str) -> Prediction:
        """Predict a channel at `x`."""
        return self._models[channel].predict(x)
