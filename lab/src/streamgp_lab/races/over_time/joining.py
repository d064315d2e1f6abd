"""Joining: what is lost where a tenth of the rows is kept, beside a model that keeps all."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import streamgp as sgp
from streamgp_lab.races.over_time.figures import Bar, Figures, nlpd, nlpd_of_f, scaled

_OF_Y, _OF_F = 0.002, 0.01  # nats
_KEEP, _MORE, _BATCHES, _STEP = 1000, 10, 40, 0.01
_EVERY = 11  # row is held out


class Stream(NamedTuple):
    """A function that is seen more often than it need be.

    Attributes:
        about: Its name.
        f: Draws the function at some times.
        noise: Of a Gaussian channel; None for counts.
        kernel: With the hyperparameters that are kept; None if those of the default are learned.
    """

    about: str
    f: Callable[[np.ndarray], np.ndarray]
    noise: float | None
    kernel: Callable[[], Any] | None

    def figure(self, of: str) -> str:
        """The name of what is measured, of y or of f."""
        return f"{self.about}: nats of {of} above a model that keeps all rows"


def smooth(x: np.ndarray) -> np.ndarray:
    """Two waves."""
    return np.sin(x) + 0.5 * np.cos(2.3 * x)


def rough(x: np.ndarray) -> np.ndarray:
    """A path of an Ornstein–Uhlenbeck process of lengthscale 2 and variance 1."""
    rng = np.random.default_rng(5)
    decay = np.exp(-np.diff(x) / 2)
    f = rng.normal(size=len(x))
    for i, factor in enumerate(decay, 1):
        f[i] = factor * f[i - 1] + np.sqrt(1 - factor**2) * f[i]
    return f


def _matern52() -> Any:
    return sgp.Matern52(1.0, 1.0)


def _matern12() -> Any:
    return sgp.Matern12(2.0, 1.0)


STREAMS = (
    Stream("joined, smooth", smooth, 0.3, _matern52),
    Stream("joined, rough", rough, 0.3, _matern12),
    Stream("joined, little noise", smooth, 0.01, _matern52),
    Stream("joined, counts", smooth, None, _matern52),
    Stream("joined, smooth, learned", smooth, 0.3, None),
    Stream("joined, rough, learned", rough, 0.3, None),
    Stream("joined, little noise, learned", smooth, 0.01, None),
)
BARS = tuple(
    Bar(stream.figure(of), most) for stream in STREAMS for of, most in (("y", _OF_Y), ("f", _OF_F))
)


def measure(share: float) -> Figures:
    """How much higher the NLPDs of y and of f are if a tenth is kept."""
    keep = scaled(_KEEP, share)
    found: Figures = {}
    for stream in STREAMS:
        of_y, of_f = lost(stream, keep)
        found |= {stream.figure("y"): of_y, stream.figure("f"): of_f}
    return found


def lost(stream: Stream, keep: int) -> tuple[float, float]:
    """What joining loses of y and of f at held-out rows."""
    rng = np.random.default_rng(0)
    x = _STEP * np.arange(keep * _MORE * _EVERY // (_EVERY - 1))
    f = stream.f(x)
    if stream.noise is None:
        y = rng.poisson(np.exp(f)).astype(float)
    else:
        y = f + stream.noise * rng.normal(size=len(f))
    held = np.arange(len(x)) % _EVERY == _EVERY // 2
    scores = []
    for kept in (keep, None):
        model = _model(stream, kept)
        columns = (np.array_split(column[~held], _BATCHES) for column in (x, y))
        for batch in zip(*columns, strict=True):
            model.update(*batch)
        scores.append((nlpd(model, x[held], y[held]), nlpd_of_f(model, x[held], f[held])))
    return scores[0][0] - scores[1][0], scores[0][1] - scores[1][1]


def _model(stream: Stream, keep: int | None) -> sgp.ContinualGP:
    channel = sgp.Poisson() if stream.noise is None else sgp.Gaussian(noise=stream.noise)
    if stream.kernel is None:
        return sgp.ContinualGP(channel, keep=keep, scale=False)
    return sgp.ContinualGP(
        channel, latents=[stream.kernel()], learning=None, keep=keep, scale=False
    )
