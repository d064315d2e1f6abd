"""Joining: what is lost where a tenth of the rows is kept, beside a model that keeps all.

Rows determine about as many numbers as the sum over rows of Var f / noise², under the posterior.
Where that is far less than what is kept, a function is seen more often than it need be, and joining
rows must lose nothing. Where it is about as much, or more, no choice of kept rows can do that; such
streams are measured, but have no bar.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Bar, Figures, nlpd, nlpd_of_f, scaled

_OF_Y, _OF_F = 0.002, 0.01  # nats
_KEEP, _MORE, _BATCHES = 1000, 10, 40
_EVERY = 11  # row is held out


class Stream(NamedTuple):
    """Observations of a function.

    Attributes:
        about: Its name.
        f: Draws the function at some times.
        step: The time between rows.
        noise: Of a Gaussian channel; None for counts.
        kernel: With the hyperparameters that are kept; None if those of the default are learned.
        is_crowded: Whether rows determine about as many numbers as are kept, or more.
    """

    about: str
    f: Callable[[np.ndarray], np.ndarray]
    step: float
    noise: float | None
    kernel: Callable[[], Any] | None
    is_crowded: bool = False

    def figure(self, of: str) -> str:
        """The name of what is lost, of y or of f."""
        return f"joined, {self.about}: nats of {of} above a model that keeps all rows"

    @property
    def determined(self) -> str:
        """The name of how many numbers rows determine."""
        return f"joined, {self.about}: numbers that rows determine"

    @property
    def bars(self) -> list[Bar]:
        """Of what is measured."""
        of_y, of_f = (None, None) if self.is_crowded else (_OF_Y, _OF_F)
        counts = [Bar(self.determined, None)] if self.noise is not None else []
        return [*counts, Bar(self.figure("y"), of_y), Bar(self.figure("f"), of_f)]


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
    Stream("smooth", smooth, 0.01, 0.3, _matern52),
    Stream("rough", rough, 0.0001, 0.3, _matern12),
    Stream("little noise", smooth, 0.001, 0.01, _matern52),
    Stream("counts", smooth, 0.01, None, _matern52),
    Stream("rough, crowded", rough, 0.01, 0.3, _matern12, is_crowded=True),
    Stream("little noise, crowded", smooth, 0.01, 0.01, _matern52, is_crowded=True),
    Stream("smooth, learned", smooth, 0.01, 0.3, None),
    Stream("rough, learned", rough, 0.0001, 0.3, None),
    Stream("little noise, learned", smooth, 0.001, 0.01, None),
)
BARS = tuple(bar for stream in STREAMS for bar in stream.bars)


class Scores(NamedTuple):
    """Of one model: NLPDs of y and f at held-out rows, and how many numbers its rows determine."""

    of_y: float
    of_f: float
    determined: float


def measure(share: float) -> Figures:
    """How much higher the NLPDs of y and of f are if a tenth is kept."""
    keep = scaled(_KEEP, share)
    found: Figures = {}
    for stream in STREAMS:
        joined, whole = beside(stream, keep)
        found[stream.figure("y")] = joined.of_y - whole.of_y
        found[stream.figure("f")] = joined.of_f - whole.of_f
        if stream.noise is not None:
            found[stream.determined] = whole.determined
    return found


def beside(stream: Stream, keep: int) -> tuple[Scores, Scores]:
    """A model that keeps so many rows, and one that keeps all."""
    rng = np.random.default_rng(0)
    x = stream.step * np.arange(keep * _MORE * _EVERY // (_EVERY - 1))
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
        variance = float(np.mean(model.predict(x[held]).latent_variance))
        determined = (~held).sum() * variance / (stream.noise or np.inf) ** 2
        of_y, of_f = nlpd(model, x[held], y[held]), nlpd_of_f(model, x[held], f[held])
        scores.append(Scores(of_y, of_f, determined))
    return scores[0], scores[1]


def _model(stream: Stream, keep: int | None) -> sgp.ContinualGP:
    channel = sgp.Poisson() if stream.noise is None else sgp.Gaussian(noise=stream.noise)
    if stream.kernel is None:
        return sgp.ContinualGP(channel, keep=keep, scale=False)
    return sgp.ContinualGP(
        channel, latents=[stream.kernel()], learning=None, keep=keep, scale=False
    )
