"""The data of the golden models, by name: batches to begin with, one more, and inputs to ask at.

Batches are arguments of `update`, as (positional, by name).
"""

import numpy as np

STREAMS = ("alone", "price", "measured", "families", "factorised")


def stream(name):
    return {
        "alone": _alone,
        "price": _price,
        "measured": _measured,
        "families": _families,
        "factorised": _factorised,
    }[name]()


def _alone():
    rng = np.random.default_rng(1)
    x = np.arange(60) / 10
    y = 20 + 3 * np.sin(np.pi * x) + 0.5 * x + 0.3 * rng.normal(size=60)
    turn = np.arange(60) % 5
    parts = [turn == 0, turn == 2, turn == 3, turn % 3 == 1]  # the last is twice as large
    *batches, more = [((x[own], y[own]), {}) for own in parts]
    return batches, more, np.linspace(0, 7, 8)


def _price():
    rng = np.random.default_rng(2)
    batches = []
    for begin in (0.0, 2.0, 4.0):
        x = begin + np.sort(rng.uniform(0, 2, 12))
        batches.append(((x, np.exp(2 + np.sin(x) + 0.1 * rng.normal(size=12))), {}))
    return batches[:2], batches[2], np.linspace(0, 7, 8)


def _measured():
    rng = np.random.default_rng(3)
    batches = []
    for begin in (0.0, 2.0, 4.0):
        x = begin + np.sort(rng.uniform(0, 2, 12))
        error = rng.uniform(0.05, 0.3, 12)
        y = np.cos(x) + error * rng.normal(size=12)
        batches.append(((x, np.stack([y, error], axis=1)), {}))
    return batches[:2], batches[2], np.linspace(0, 7, 8)


def _families():
    """The channel of snow has no data until the last batch."""
    rng = np.random.default_rng(4)
    batches = []
    for begin in (0.0, 4.0, 8.0):
        x = begin + np.sort(rng.uniform(0, 4, 12))
        wind = np.sin(x) + 0.1 * rng.normal(size=12)
        sky = np.asarray(["rain", "sun", "fog"], object)[
            (wind > 0.3).astype(int) + (rng.random(12) > 0.8)
        ]
        rain = rng.poisson(np.exp(0.5 + 0.5 * np.cos(x))).astype(float)
        data = {"wind": (x, wind), "sky": (x, sky), "rain": (x[:6], rain[:6])}
        batches.append(((data,), {}))
    batches[2][0][0]["snow"] = (x[::2], 30 + 4 * np.cos(x[::2]))
    return batches[:2], batches[2], np.linspace(0, 12, 9)


def _factorised():
    rng = np.random.default_rng(5)
    batches = []
    for begin in (0.0, 3.0, 6.0):
        x = begin + np.sort(rng.uniform(0, 3, 10))
        f = np.sin(x)
        data = {
            "grade": (x, np.digitize(f + 0.3 * rng.normal(size=10), [-0.3, 0.3]).astype(float)),
            "load": (x, 5 + f + 0.2 * rng.standard_t(3, 10)),
            "price": (x[:7], np.exp(f[:7] + 0.1 * rng.normal(size=7))),
        }
        batches.append(((data,), {}))
    return batches[:2], batches[2], np.linspace(0, 9, 7)
