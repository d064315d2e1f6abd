"""The data of the golden models, by name: batches to begin with, one more, and inputs to ask at.

Batches are arguments of `update`, as (positional, by name).
"""

import numpy as np
import pandas as pd

import streamgp as sgp

STREAMS = ("alone", "families", "factorised", "others", "foreign")


@sgp.register(name="golden.rule")
def rule(t):
    """The number of inducing points of the model that grows."""
    return 3 + 2 * t


def stream(name):
    return {
        "alone": _alone,
        "families": _families,
        "factorised": _factorised,
        "others": _others,
        "foreign": _foreign,
    }[name]()


def _alone():
    times = pd.date_range("2024-03-29", periods=48, freq="3h", tz="Europe/Berlin")
    rng = np.random.default_rng(1)
    days = np.arange(48) / 8
    y = 20 + 3 * np.sin(np.pi * days) + 0.5 * days + 0.3 * rng.normal(size=48)
    frames = [pd.DataFrame({"when": times[i], "y": y[i]}) for i in np.split(np.arange(48), 4)]
    batches = [((frame,), {"inputs": "when"}) for frame in frames]
    return batches[:3], batches[3], frames[1][["when"]]


def _families():
    rng = np.random.default_rng(2)
    batches = []
    for begin in (0.0, 4.0, 8.0):
        x = begin + np.sort(rng.uniform(0, 4, 12))
        wind = np.sin(x) + 0.1 * rng.normal(size=12)
        sky = np.asarray(["rain", "sun", "fog"], object)[
            (wind > 0.3).astype(int) + (rng.random(12) > 0.8)
        ]
        rain = rng.poisson(np.exp(0.5 + 0.5 * np.cos(x))).astype(float)
        batches.append((({"wind": (x, wind), "sky": (x, sky), "rain": (x[:6], rain[:6])},), {}))
    return batches[:2], batches[2], np.linspace(0, 12, 9)


def _factorised():
    rng = np.random.default_rng(3)
    batches = []
    for begin in (0.0, 3.0, 6.0):
        x = begin + np.sort(rng.uniform(0, 3, 10))
        f = np.sin(x)
        grade = np.digitize(f + 0.3 * rng.normal(size=10), [-0.3, 0.3])
        categories = pd.Categorical.from_codes(grade, ["low", "middle", "high"], ordered=True)
        frame = pd.DataFrame(
            {
                "t": x,
                "grade": categories,
                "load": f + 0.2 * rng.standard_t(3, 10),
                "price": np.where(
                    np.arange(10) == 4, np.nan, np.exp(f + 0.1 * rng.normal(size=10))
                ),
            }
        )
        batches.append(((frame,), {"inputs": "t"}))
    return batches[:2], batches[2], np.linspace(0, 9, 7)


def _others():
    rng = np.random.default_rng(4)
    batches = []
    for _ in range(3):
        x = rng.uniform(0, [6, 3], (14, 2))
        f = np.sin(x[:, 0]) + 0.3 * x[:, 1]
        chance = 1 / (1 + np.exp(-f))
        data = {
            "yes": (rng.random(14) < chance).astype(float),
            "share": np.clip(rng.beta(10 * chance, 10 * (1 - chance)), 0.01, 0.99),
            "hits": rng.binomial(5, chance).astype(float),
            "wait": rng.exponential(np.exp(f)),
            "sum": rng.gamma(2.0, np.exp(f) / 2),
            "real": rng.normal(f, 0.3),
            "count": rng.poisson(np.exp(f)).astype(float),
        }
        batches.append((({name: (x, y) for name, y in data.items()},), {}))
    x = np.stack([np.linspace(0, 6, 6), np.linspace(0, 3, 6)], axis=1)
    return batches[:2], batches[2], x


def _foreign():
    rng = np.random.default_rng(5)
    batches = []
    for begin in (0.0, 2.0, 4.0):
        x = begin + rng.uniform(0, 2, (10, 1))
        y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=10)
        batches.append((({"a": (x, y), "b": (x[:5], -y[:5])},), {}))
    return batches[:2], batches[2], np.linspace(0, 6, 7)
