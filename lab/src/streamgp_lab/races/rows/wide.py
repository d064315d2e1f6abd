"""Many channels over time that share three functions."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, over_seeds, scaled
from streamgp_lab.races.rows.streams import Waves, learned_by_channel, rmse

_FUNCTIONS, _TIMES, _BATCHES, _NOISE, _STEP = 3, 1000, 20, 0.3, 0.05
_MOST = {50: 5.0, 200: 40.0}  # CPU seconds, by the number of channels
_MOST_MB = 5.0  # of the file of the fewest


def _cpu(count: int) -> str:
    return f"{count} channels × 1,000 times: all updates, CPU s"


def _file(count: int) -> str:
    return f"{count} channels × 1,000 times: file, MB"


def _error(count: int) -> str:
    return f"{count} channels × 1,000 times: RMSE of f, as a part of its deviation"


BARS = tuple(
    bar
    for count, most in _MOST.items()
    for bar in (
        over_seeds(_cpu(count), most)[0],
        over_seeds(_file(count), _MOST_MB if count == min(_MOST) else None)[0],
        over_seeds(_error(count))[0],
    )
)


def measure(share: float, seed: int) -> Figures:
    """Every channel has a value at every time. The error is that at these times."""
    found: Figures = {}
    for count in _MOST:
        rng = np.random.default_rng(seed)
        x = _STEP * np.arange(scaled(_TIMES, share))
        functions = np.stack([Waves(rng, 1, 1.0)(x[:, None]) for _ in range(_FUNCTIONS)])
        f = rng.normal(size=(count, _FUNCTIONS)) @ functions
        names = [f"channel {k}" for k in range(count)]
        values = dict(zip(names, f + _NOISE * rng.normal(size=f.shape), strict=True))
        model = sgp.ContinualGP({name: sgp.Gaussian() for name in names}, latents=_FUNCTIONS)
        found[_cpu(count)] = sum(learned_by_channel(model, x, values, _BATCHES))
        found[_file(count)] = len(model.to_bytes()) / 1e6
        found[_error(count)] = rmse(list(f), [model.predict(x, name).mean for name in names])
    return found
