"""Independent models: a continual GP of its own for every channel."""

from collections.abc import Mapping

import numpy as np

from streamgp.gp import ContinualGP
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import Data


class Independent:
    """Channels that know nothing of each other."""

    def __init__(self, models: Mapping[str, ContinualGP]):
        self._models = dict(models)

    @property
    def inducing_points(self) -> tuple[np.ndarray, ...]:
        return tuple(z for model in self._models.values() for z in model.inducing_points)

    def update(self, data: Data) -> None:
        """Fold each channel's part of a batch into its own model."""
        for name, (x, y) in data.items():
            self._models[name].update(x, y)

    def predict(self, x: np.ndarray, channel: str) -> Prediction:
        """What that channel will show at `x`."""
        return self._models[channel].predict(x)
