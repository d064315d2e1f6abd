"""A million rows in batches, learning, with the default number of kept rows, and with all."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Bar, Figures, cpu_seconds, nlpd, scaled

_LONGEST = "10⁶ rows, default `keep`: the longest update, CPU s"
_ALL = "10⁶ rows, default `keep`: all updates, CPU s"
_TENTH = "10⁶ rows, default `keep`: bytes of the file after a tenth"
_BYTES = "10⁶ rows, default `keep`: bytes of the file"
_GROWTH = "10⁶ rows, default `keep`: the file, as a multiple of that after a tenth"
_WORSE = "10⁶ rows, default `keep`: nats above a model that keeps all rows"
_NLPD = "10⁶ rows, default `keep`: NLPD of y"
_NLPD_OF_ALL = "10⁶ rows, all kept: NLPD of y"
_BEST = "10⁶ rows: NLPD of y of who knows f and the noise"
_LONGEST_OF_ALL = "10⁶ rows, all kept: the longest update, CPU s"
_BYTES_OF_ALL = "10⁶ rows, all kept: bytes of the file"
BARS = (
    Bar(_LONGEST, 0.5),
    Bar(_ALL, None),
    Bar(_TENTH, None),
    Bar(_BYTES, None),
    Bar(_GROWTH, 1.25),
    Bar(_WORSE, 0.003),
    Bar(_NLPD, None),
    Bar(_NLPD_OF_ALL, None),
    Bar(_BEST, None),
    Bar(_LONGEST_OF_ALL, None),
    Bar(_BYTES_OF_ALL, None),
)
_ROWS, _TOGETHER, _HELD_OUT = 1_000_000, 1000, 20_000
_PER_UNIT, _NOISE = 2000, 0.3


def measure(share: float) -> Figures:
    """Five hundred units of waves, for which the default number of rows is more than enough.

    Times are irregular: on a grid, a process much faster than its steps is noise by another name.
    """
    rng = np.random.default_rng(0)
    count = scaled(_ROWS, share)
    end = count / _PER_UNIT
    x, at = np.sort(rng.uniform(0, end, count)), rng.uniform(0, end, _HELD_OUT)
    y = _waves(x) + _NOISE * rng.normal(size=count)
    y_at = _waves(at) + _NOISE * rng.normal(size=_HELD_OUT)
    default, whole = sgp.ContinualGP(sgp.Gaussian()), sgp.ContinualGP(sgp.Gaussian(), keep=None)
    seconds, tenth = _learned(default, x, y)
    all_seconds, _ = _learned(whole, x, y)
    size = len(default.to_bytes())
    score, whole_score = nlpd(default, at, y_at), nlpd(whole, at, y_at)
    missed = (y_at - _waves(at)) / _NOISE
    return {
        _LONGEST: max(seconds),
        _ALL: sum(seconds),
        _TENTH: float(tenth),
        _BYTES: float(size),
        _GROWTH: size / tenth,
        _WORSE: score - whole_score,
        _NLPD: score,
        _NLPD_OF_ALL: whole_score,
        _BEST: float(np.mean(0.5 * np.log(2 * np.pi * _NOISE**2) + 0.5 * missed**2)),
        _LONGEST_OF_ALL: max(all_seconds),
        _BYTES_OF_ALL: float(len(whole.to_bytes())),
    }


def _waves(x: np.ndarray) -> np.ndarray:
    return np.sin(x) + 0.5 * np.cos(x / 3.7)


def _learned(model: sgp.ContinualGP, x: np.ndarray, y: np.ndarray) -> tuple[list[float], int]:
    """CPU seconds of each update, and the bytes of the file once a tenth had been learned."""
    seconds, tenth = [], 0
    for begin in range(0, len(x), _TOGETHER):
        rows = slice(begin, begin + _TOGETHER)
        seconds.append(cpu_seconds(lambda rows=rows: model.update(x[rows], y[rows])))
        if not tenth and rows.stop >= len(x) / 10:
            tenth = len(model.to_bytes())
    return seconds, tenth
