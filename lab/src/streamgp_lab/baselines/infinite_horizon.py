"""Infinite-horizon Gaussian processes (Solin, Hensman and Turner, NeurIPS 2018).

A Matérn-3/2 process is a linear state-space model with two states. At equal steps the covariances
of its Kalman filter converge, to values that depend on the measurement variance R alone. The method
uses these values from the start and filters only the means. For a likelihood that is not Gaussian,
R is found by moment matching (assumed density filtering) and the covariances come from a table
over R.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.errors import DataError, NumericalError, problem
from streamgp.likelihoods import Gaussian, Likelihood
from streamgp.parameters import unwrap
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import SampleScores
from streamgp_lab.baselines.even_steps import (
    check_model,
    check_observations,
    even_step,
    one_column,
)
from streamgp_lab.baselines.steady import (
    Steady,
    away,
    look_up,
    row_of,
    smooth,
    steady_at,
    steady_table,
)

_STEP = 0.05  # of differences, in standard deviations of f
_FIRST = np.array([1, -8, 0, 8, -1]) / 12  # weights of five values, for a first derivative
_SECOND = np.array([-1, 16, -30, 16, -1]) / 12


class _State(NamedTuple):
    mean: Float[np.ndarray, " 2"]  # of f − offset and of its derivative, after a sample
    row: float  # of the table, for the R of that sample


class _Filtered(NamedTuple):
    means: Float[np.ndarray, "N 2"]  # after each sample
    rows: Float[np.ndarray, " N"]
    scores: Float[np.ndarray, " N"]  # log predictive density of each before it was learned


class InfiniteHorizon:
    """A Matérn-3/2 process over one column of equally spaced inputs, in its steady state.

    The hyperparameters are given and are not learned; `offset` is the mean of f. Parameters of the
    likelihood that are not given are set from the first run of samples. That run needs at least two
    samples, which determine the step.

    The cost per sample is constant. The filter needs only its last mean, but the smoother runs
    backwards over all filtered means, so all of them are kept.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        *,
        lengthscale: float,
        variance: float,
        offset: float = 0.0,
        name: str = "y",
    ):
        check_model(likelihood, lengthscale, variance)
        self.likelihood, self.name = likelihood, name
        self.offset, self.variance = float(offset), float(variance)
        self._rate = np.sqrt(3) / lengthscale
        self._step = 0.0
        self._steady: Steady | None = None
        self._runs: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # x, means, rows

    def update(self, data: Mapping[str, tuple[Any, Any]]) -> SampleScores:
        """Learn a run of samples, `{name: (x, y)}`, that continues the last run."""
        if list(data) != [self.name]:
            raise DataError(
                problem(f"samples of {self.name!r}", f"{list(data)}", "It has no other channel.")
            )
        return self.update_many(*data[self.name])

    def update_many(self, x: Any, y: Any) -> SampleScores:
        """The same, from inputs and observations. If it fails, nothing has changed."""
        x, y = one_column(x), np.asarray(y, float).reshape(-1)
        last = self._runs[-1][0][-1:] if self._runs else x[:0]
        step = even_step(np.concatenate([last, x]), self._step)
        likelihood, steady = self.likelihood, self._steady
        check_observations(likelihood, len(x), y)
        if steady is None:
            likelihood = unwrap(likelihood.start(y))
            steady = self._settle(likelihood, step)
        found = _filter(likelihood, steady, self.offset, self._last(steady), y)
        if not np.isfinite(found.means).all():
            raise NumericalError(
                problem("finite means", "other ones", "Look for extreme observations.")
            )
        self.likelihood, self._steady, self._step = likelihood, steady, step
        self._runs.append((x, found.means, found.rows))
        return SampleScores({self.name: found.scores})

    def _settle(self, likelihood: Likelihood, step: float) -> Steady:
        if isinstance(likelihood, Gaussian):  # R is the same for all samples
            return steady_at(self._rate * step, self.variance, float(likelihood.noise) ** 2)
        return steady_table(self._rate * step, self.variance)

    def _last(self, steady: Steady) -> _State:
        """The state after the last sample. Before the first, the state after one with infinite R.

        In the table that is the prior. The only row of a Gaussian has its constant gain.
        """
        if not self._runs:
            return _State(np.zeros(2), len(steady.predicted) - 1.0)
        _, means, rows = self._runs[-1]
        return _State(means[-1], float(rows[-1]))

    def predict(self, x: Any, channel: str | None = None) -> Prediction:
        """The smoothed process at learned inputs, and its extrapolation before and after them.

        Between learned inputs, mean and variance are interpolated linearly. The smoothed variance
        is that of infinitely many samples on both sides, so it is too small near the first and the
        last sample. Means within a few lengthscales of the first are inexact too, because the
        steady gain is used from the start.
        """
        if channel not in (None, self.name):
            raise DataError(problem(f"channel {self.name!r}", repr(channel), "Leave it out."))
        if self._steady is None:
            raise DataError(problem("samples before predictions", "none", "Call `update` first."))
        x, steady = one_column(x), self._steady
        seen, means, rows = (np.concatenate(parts) for parts in zip(*self._runs, strict=True))
        last = look_up(steady.filtered, float(rows[-1]))
        mean, variance = away(means[-1], last, self._rate * (x - seen[-1]), self.variance)
        if np.any(x < seen[-1]):
            smoothed = smooth(steady, means, rows)
            spread = look_up(steady.smoothed, rows)
            spread[-1] = last
            back = away(smoothed[0], spread[0], self._rate * (x - seen[0]), self.variance)
            within = (np.interp(x, seen, smoothed[:, 0]), np.interp(x, seen, spread[:, 0, 0]))
            where = [x < seen[0], x < seen[-1]]
            mean = np.select(where, [back[0], within[0]], mean)
            variance = np.select(where, [back[1], within[1]], variance)
        return Prediction(self.likelihood, self.offset + mean[:, None], variance[:, None, None])


def _filter(
    likelihood: Likelihood,
    steady: Steady,
    offset: float,
    begin: _State,
    y: Float[np.ndarray, " N"],
) -> _Filtered:
    """The state after each sample, and the log predictive density of each before learning it."""
    means, rows, spreads = np.empty((len(y), 2)), np.empty(len(y)), np.empty(len(y))
    expected = np.empty(len(y))
    mean, row = begin
    for n in range(len(y)):
        mean = steady.transition @ mean
        # P·h before this sample, in the steady state for the R of the last one. It replaces the
        # covariance that a full filter would carry on, as in the code of the authors.
        reach = look_up(steady.predicted, row)[0]
        expected[n], spreads[n] = offset + mean[0], reach[0]
        alpha, beta = _slopes(likelihood, y[n : n + 1], float(expected[n]), float(reach[0]))
        # Moment matching: a measurement m + α/β of variance R = 1/β − P₁₁. Its gain K is
        # P·h/(P₁₁ + R) = β·P·h, so the mean moves by α·P·h. If β is not positive the mean moves
        # too, and the covariance stays the prior's. For a Gaussian R is its noise and K constant.
        mean = mean + alpha * reach
        row = row_of(steady, max(1 / beta - reach[0], 1e-300) if beta > 0 else np.inf)
        means[n], rows[n] = mean, row
    scores = likelihood.log_predictive(y, expected[:, None], spreads[:, None, None])
    return _Filtered(means, rows, scores)


def _slopes(
    likelihood: Likelihood, y: Float[np.ndarray, " 1"], mean: float, variance: float
) -> tuple[float, float]:
    """α and β: the first and minus the second derivative of log E[p(y|f)] by the mean of f.

    Differences are exact enough: the variance of f makes that a smooth function of the mean.
    """
    if isinstance(likelihood, Gaussian):
        total = variance + float(likelihood.noise) ** 2
        return (float(y[0]) - mean) / total, 1 / total
    step = _STEP * np.sqrt(variance)
    at = mean + step * np.arange(-2, 3)[:, None]
    values = likelihood.log_predictive(np.repeat(y, 5), at, np.full((5, 1, 1), variance))
    return float(_FIRST @ values) / step, -float(_SECOND @ values) / step**2
