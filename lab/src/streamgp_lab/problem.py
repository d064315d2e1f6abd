"""What contenders are given: batches in order, and held-out rows from where each came from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp_lab.experiments import problem as experiments


class Rows(NamedTuple):
    """Observations: input, value and channel of each."""

    x: Float[np.ndarray, "N P"]
    y: Float[np.ndarray, " N"]
    channel: Int[np.ndarray, " N"]

    def take(self, which: slice | np.ndarray) -> "Rows":
        return Rows(self.x[which], self.y[which], self.channel[which])


def rows(x: np.ndarray, y: Float[np.ndarray, " N"], channel: np.ndarray | int = 0) -> Rows:
    """Observations; inputs may be one column, channels one number."""
    x = np.asarray(x, float)
    x = x[:, None] if x.ndim == 1 else x
    return Rows(x, np.asarray(y, float), np.broadcast_to(channel, len(y)).astype(int))


def joined(parts: Sequence[Rows]) -> Rows:
    return Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Problem:
    """A stream: batches, then perhaps single samples."""

    name: str
    train: list[Rows]
    test: list[Rows]
    single: Rows | None = None  # samples that come one by one, after the batches
    kind: Literal["real", "binary"] = "real"

    @property
    def span(self) -> list[list[float]]:
        """The range of each input, for contenders that must know it beforehand."""
        x = joined([*self.train, *([self.single] if self.single else [])]).x
        return np.stack([x.min(axis=0), x.max(axis=0)], axis=1).tolist()


class Score(NamedTuple):
    """Of predictions of held-out rows: means over them."""

    nlpd: float
    error: float  # root mean square error; of classes, the share that is wrong
    coverage: float  # of 95% intervals; NaN for classes


def score(kind: str, y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Score:
    if kind == "binary":
        chance = np.clip(np.where(y > 0, mean, 1 - mean), 1e-300, None)
        return Score(-np.log(chance).mean(), float(np.mean((mean > 0.5) != y)), np.nan)
    residual = (y - mean) ** 2
    if not np.isfinite(residual).all():
        return Score(np.nan, np.nan, np.nan)
    return Score(
        float(np.mean(0.5 * np.log(2 * np.pi * variance) + 0.5 * residual / variance)),
        float(np.sqrt(residual.mean())),
        float(np.mean(residual <= 1.959964**2 * variance)),
    )


def of_experiment(experiment: experiments.Experiment, share: float) -> Problem:
    """The first seed of an experiment of the paper, with one channel."""
    drawn = experiment.problem(experiments.Options(share=share))
    (name,) = drawn.channels

    def all_rows(batches: Sequence[Any]) -> list[Rows]:
        return [rows(*batch[name]) for batch in batches]

    train, test = all_rows(drawn.train), all_rows(drawn.test)
    binary = set(np.unique(train[0].y)) <= {0.0, 1.0}
    kind: Literal["real", "binary"] = "binary" if binary else "real"
    if drawn.single is None:
        return Problem(experiment.name, train, test, kind=kind)
    return Problem(
        experiment.name, train[: drawn.single], test, joined(train[drawn.single :]), kind
    )
