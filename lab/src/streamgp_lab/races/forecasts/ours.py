"""This library: with no settings, and with the seasons named."""

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp_lab.races.forecasts.rolling import LEVEL, Forecast, Forecaster


class Ours(Forecaster):
    """One Gaussian channel; every setting but `seasons` is as it is by default."""

    def __init__(self, season: float | None = None) -> None:
        seasons = [] if season is None else [season]
        self.model = sgp.ContinualGP(sgp.Gaussian(), seasons=seasons)
        self._learned = 0

    def learn(self, y: Float[np.ndarray, " N"]) -> None:
        t = np.arange(self._learned, self._learned + len(y), dtype=float)
        seen = np.isfinite(y)
        if seen.any():
            self.model.update(t[seen], y[seen])
        self._learned += len(y)

    def forecast(self, steps: int) -> Forecast:
        found = self.model.predict(np.arange(self._learned, self._learned + steps, dtype=float))
        return Forecast(
            found.mean,
            np.sqrt(found.variance),
            np.stack(found.interval(LEVEL, calibrated=True)),
        )
