"""Channels over two inputs that share three functions: how well these are known at the end."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, over_seeds, scaled
from streamgp_lab.races.rows.streams import Waves, learned_by_channel, rmse

_MOST = 1.05  # of what the other revision has: less is within what seeds differ by
_CHANNELS, _FUNCTIONS = (6, 20), 3
_ROWS, _ASKED, _BATCHES, _NOISE = 2400, 500, 20, 0.3  # rows and batches of all channels together
_WIDE, _LENGTHSCALE = 6.0, 1.5


def _error(count: int) -> str:
    return f"{count} channels: RMSE of f, as a part of its deviation"


def _cpu(count: int) -> str:
    return f"{count} channels: all updates, CPU s"


BARS = tuple(
    bar
    for count in _CHANNELS
    for bar in (*over_seeds(_error(count), _MOST, is_ratio=True), over_seeds(_cpu(count))[0])
)


def measure(share: float, seed: int) -> Figures:
    """At fresh inputs, over all channels together. Every row is an observation of one channel."""
    found: Figures = {}
    for count in _CHANNELS:
        rng = np.random.default_rng(seed)
        functions = [Waves(rng, 2, _LENGTHSCALE) for _ in range(_FUNCTIONS)]
        weights = rng.normal(size=(count, _FUNCTIONS))
        x, asked = (rng.uniform(0, _WIDE, (size, 2)) for size in (scaled(_ROWS, share), _ASKED))
        values, truth = (weights @ np.stack([f(at) for f in functions]) for at in (x, asked))
        values += _NOISE * rng.normal(size=values.shape)
        values[np.arange(len(x)) % count != np.arange(count)[:, None]] = np.nan
        names = [f"channel {k}" for k in range(count)]
        model = sgp.ContinualGP({name: sgp.Gaussian() for name in names}, latents=_FUNCTIONS)
        columns = dict(zip(names, values, strict=True))
        found[_cpu(count)] = sum(learned_by_channel(model, x, columns, _BATCHES))
        said = [model.predict(asked, name).mean for name in names]
        found[_error(count)] = rmse(list(truth), said)
    return found
