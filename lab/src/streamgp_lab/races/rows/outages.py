"""One of several channels is silent at a time: whether 95% bands hold what was not seen."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, over_seeds, scaled
from streamgp_lab.races.rows.streams import Waves, learned_by_channel

_MOST, _BAND = 0.1, 0.95
_CHANNELS, _FUNCTIONS, _OUTAGES = 3, 2, 3  # outages of each channel
_TIMES, _LENGTH, _NOISE, _END, _LENGTHSCALE = 360, 30, 0.2, 40.0, 1.5
_BATCHES = 40
_MISSED = {
    inputs: f"outages of one of three channels, {inputs} inputs: share of values outside 95% bands"
    for inputs in (1, 2)
}
BARS = tuple(over_seeds(missed, worst=_MOST)[1] for missed in _MISSED.values())


def measure(share: float, seed: int) -> Figures:
    """Over all values of outages, when the stream has ended."""
    return {figure: _outside(inputs, share, seed) for inputs, figure in _MISSED.items()}


def _outside(inputs: int, share: float, seed: int) -> float:
    """Functions differ in what they depend on beside time, if there is another input."""
    rng = np.random.default_rng(seed)
    times = scaled(_TIMES, share)
    x = np.column_stack([np.linspace(0, _END, times), rng.normal(size=(times, inputs - 1))])
    functions = np.stack([Waves(rng, inputs, _LENGTHSCALE)(x) for _ in range(_FUNCTIONS)])
    f = rng.normal(size=(_CHANNELS, _FUNCTIONS)) @ functions
    values = f + _NOISE * rng.normal(size=f.shape)
    silent = silences(times)
    names = [f"channel {k}" for k in range(_CHANNELS)]
    model = sgp.ContinualGP(
        {name: sgp.Gaussian() for name in names}, latents=[(sgp.RBF(), _FUNCTIONS)]
    )
    seen = dict(zip(names, np.where(silent, np.nan, values), strict=True))
    learned_by_channel(model, x, seen, _BATCHES)
    outside = []
    for name, y, out in zip(names, values, silent, strict=True):
        low, high = model.predict(x[out], name).interval(_BAND)
        outside.append((y[out] < low) | (y[out] > high))
    return float(np.mean(np.concatenate(outside)))


def silences(times: int) -> np.ndarray:
    """Which channel is silent when: each in turn, with a pause in between."""
    silent = np.zeros((_CHANNELS, times), bool)
    length = max(_LENGTH * times // _TIMES, 1)
    every = times / (_CHANNELS * _OUTAGES)
    for turn in range(_CHANNELS * _OUTAGES):
        end = round((turn + 1) * every)
        silent[turn % _CHANNELS, max(end - length, 0) : end] = True
    return silent
