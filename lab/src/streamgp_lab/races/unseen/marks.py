"""What normal predictions of held-out numbers are worth."""

from typing import NamedTuple

import numpy as np
from scipy import stats

_WINDOWS = 5
_WIDTH = float(stats.norm.ppf(0.975))


class Marks(NamedTuple):
    """Means over held-out rows, and the 95% interval's coverage, as a whole and by windows."""

    nlpd: float
    rmse: float
    crps: float
    coverage: float
    lowest: float  # coverage in the worst of five consecutive windows of the held-out rows
    highest: float

    def cells(self) -> list[str]:
        """For a row of a table."""
        windows = f"{self.lowest:.0%}–{self.highest:.0%}"
        scores = [f"{value:.3f}" for value in (self.nlpd, self.rmse, self.crps)]
        return [*scores, f"{self.coverage:.1%}", windows]


HEADING = ["NLPD", "RMSE", "CRPS", "95% interval holds", "in five windows"]


def marks(y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Marks:
    """Of rows in the order of the stream."""
    spread = np.sqrt(variance)
    z = (y - mean) / spread
    nlpd = -stats.norm.logpdf(z) + np.log(spread)
    crps = spread * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
    inside = np.abs(z) <= _WIDTH
    windows = [float(part.mean()) for part in np.array_split(inside, _WINDOWS) if len(part)]
    return Marks(
        float(nlpd.mean()),
        float(np.sqrt(np.mean((y - mean) ** 2))),
        float(crps.mean()),
        float(inside.mean()),
        min(windows),
        max(windows),
    )


def averaged(several: list[Marks]) -> Marks:
    """The mean over splits."""
    return Marks(*np.mean(several, axis=0).tolist())
