"""Accuracy over the length of a stream, with the true hyperparameters and with learned ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

import streamgp as sgp
from streamgp_lab.baselines.smoother import Matern, log_evidence, most_likely, smooth
from streamgp_lab.races.long.streams import (
    CHAIN,
    DENSE,
    TRUTH,
    Stream,
    known_model,
    learned,
    learning_model,
    stream,
    timed,
)
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.report import Part
from streamgp_lab.reporting.tables import Table, number
from streamgp_lab.scores import score_of_moments

EXACT, OFFLINE = "exact smoother", "offline maximum likelihood"
REFINED = "chain, then `refine()`"
SHUFFLED = "chain, rows in random order"
_LATE = 5  # the last updates, whose median is shown
_FARTHEST = 0.01  # of the chain's means from the exact ones, in standard deviations of f
_CLOSE = 0.02  # of learned hyperparameters from those of maximum likelihood, as a part


@dataclass(frozen=True)
class Known:
    """What one method made of one stream, with the true hyperparameters.

    Attributes:
        method: Its name.
        length: Of the stream, in lengthscales.
        points: The number of inducing times or points; of the exact smoother that of rows.
        rmse: Of f at held-out times.
        nlpd: Of held-out observations.
        oldest: The RMSE in the oldest tenth.
        newest: The RMSE in the newest tenth.
        farthest: The largest difference of its means from those of the exact smoother.
        late: CPU seconds of a late update. The exact smoother has none.
    """

    method: str
    length: float
    points: int
    rmse: float
    nlpd: float
    oldest: float
    newest: float
    farthest: float
    late: float = np.nan


@dataclass(frozen=True)
class Learning:
    """What one method learned from one stream.

    Attributes:
        method: Its name.
        length: Of the stream, in lengthscales.
        found: The hyperparameters.
        short: How far their evidence is below the largest, in nats.
        took: CPU seconds of all learning.
    """

    method: str
    length: float
    found: Matern
    short: float
    took: float


_Found = TypeVar("_Found", Known, Learning)


def known(length: float, batches: int, seed: int = 0) -> list[Known]:
    """Both engines and the exact smoother on one stream; the chain also in another order."""
    data = stream(length, seed)
    exact = smooth(data.x, data.y, data.at, TRUTH)
    found = [_scored(EXACT, length, len(data.x), data, *exact, exact.mean)]
    order = np.random.default_rng(seed).permutation(len(data.x))
    mixed = data._replace(x=data.x[order], y=data.y[order])
    for method, engine, rows in (
        (CHAIN, CHAIN, data),
        (SHUFFLED, CHAIN, mixed),
        (DENSE, DENSE, data),
    ):
        model = known_model(engine)
        late = float(np.median(_streamed(model, rows, batches)[-_LATE:]))
        said = model.predict(data.at)
        mean, variance = said.latent_mean, said.latent_variance
        points = len(model.inducing_points[0])
        found.append(_scored(method, length, points, data, mean, variance, exact.mean, late))
    return found


def learning(length: float, batches: int, seed: int = 0) -> list[Learning]:
    """Both engines and offline maximum likelihood on one stream."""
    data = stream(length, seed)
    took, best = timed(lambda: most_likely(data.x, data.y, TRUTH))
    found = [(OFFLINE, best, took)]
    for engine in (CHAIN, DENSE):
        model = learning_model(engine)
        took = sum(_streamed(model, data, batches))
        found.append((engine, learned(model), took))
        if engine == CHAIN:  # the last rows came after its last M step
            more, _ = timed(model.refine)
            found.append((REFINED, learned(model), took + more))
    most = log_evidence(data.x, data.y, best)
    return [
        Learning(method, length, own, most - log_evidence(data.x, data.y, own), took)
        for method, own, took in found
    ]


def _streamed(model: sgp.ContinualGP, data: Stream, batches: int) -> list[float]:
    """Learn a stream in the order of its rows; CPU seconds of each update."""
    seconds = []
    for rows in np.array_split(np.arange(len(data.x)), batches):
        took, _ = timed(lambda rows=rows: model.update(data.x[rows], data.y[rows]))
        seconds.append(took)
    return seconds


def _scored(
    method: str,
    length: float,
    points: int,
    data: Stream,
    mean: Float[np.ndarray, " K"],
    variance: Float[np.ndarray, " K"],
    exact: Float[np.ndarray, " K"],
    late: float = np.nan,
) -> Known:
    error, tenth = mean - data.f, max(len(mean) // 10, 1)
    score = score_of_moments("real", data.y_at, mean, variance + TRUTH.noise**2)
    return Known(
        method, length, points, _root(error), score.nlpd, _root(error[:tenth]),
        _root(error[-tenth:]), float(np.max(np.abs(mean - exact))), late,
    )  # fmt: skip


def _root(error: Float[np.ndarray, " _"]) -> float:
    return float(np.sqrt(np.mean(error**2)))


def known_parts(found: Sequence[Known]) -> list[Part]:
    """The table of accuracy over length, and what is claimed of it."""
    heading = [
        "lengthscales", "method", "M", "RMSE of f", "NLPD", "oldest tenth", "newest tenth",
        "farthest from exact", "late update, CPU ms", "time relative to the chain",
    ]  # fmt: skip
    rows = []
    for each in found:
        beside = _of(found, CHAIN, each.length)
        ratio = f"{number(each.late / beside.late)}×" if np.isfinite(each.late) else ""
        rows.append([
            number(each.length), each.method, f"{each.points:,}", f"{each.rmse:.4f}",
            f"{each.nlpd:.4f}", f"{each.oldest:.3f}", f"{each.newest:.3f}",
            f"{each.farthest:.1e}", number(1e3 * each.late), ratio,
        ])  # fmt: skip
    table = Table("Accuracy over length, with the true hyperparameters", heading, rows)
    chains = [each for each in found if each.method == CHAIN]
    worst = max(each.nlpd - _of(found, EXACT, each.length).nlpd for each in chains)
    score = "the chain's NLPD is at most 0.001 above the exact smoother's at every length"
    return [
        table,
        [_near(found, CHAIN), _near(found, SHUFFLED), Claim(score, f"{worst:+.1e}", worst <= 1e-3)],
    ]


def _near(found: Sequence[Known], method: str) -> Claim:
    farthest = max(each.farthest for each in found if each.method == method)
    sentence = f"{method}: means within {_FARTHEST:g} of the exact smoother's"
    return Claim(sentence, f"{farthest:.1e}", farthest <= _FARTHEST)


def learning_parts(found: Sequence[Learning]) -> list[Part]:
    """The table of learned hyperparameters, and what is claimed of it."""
    heading = [
        "lengthscales", "method", "lengthscale", "variance", "noise", "nats below the largest",
        "CPU s of all learning",
    ]  # fmt: skip
    rows = [
        [
            number(e.length), e.method, *(f"{value:.3f}" for value in e.found), number(e.short),
            number(e.took),
        ]
        for e in found
    ]  # fmt: skip
    worst = 0.0
    for each in found:
        if each.method == REFINED:
            best = _of(found, OFFLINE, each.length).found
            apart = np.abs(np.array(each.found) / np.array(best) - 1)
            worst = max(worst, float(apart.max()))
    sentence = f"{REFINED}: within {_CLOSE:.0%} of offline maximum likelihood"
    claim = Claim(sentence, f"{worst:.1%}", worst <= _CLOSE)
    return [Table("Hyperparameters that were learned", heading, rows), [claim]]


def _of(found: Sequence[_Found], method: str, length: float) -> _Found:
    (each,) = (each for each in found if (each.method, each.length) == (method, length))
    return each
