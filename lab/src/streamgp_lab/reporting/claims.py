"""Claims: a sentence, what was measured, and whether the sentence holds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_VERDICTS = {True: "holds", False: "does not hold", None: "not measured"}


class Claim(NamedTuple):
    """What is claimed, and what was measured."""

    sentence: str
    measured: str
    holds: bool | None  # None if there is nothing to compare with

    def __str__(self) -> str:
        return f"{self.sentence}: {self.measured} ({_VERDICTS[self.holds]})"

    def of(self, subject: str) -> "Claim":
        """The same claim with its subject in front."""
        return self._replace(sentence=f"{subject}: {self.sentence}")


def at_most(limit: float, values: Sequence[float], what: str) -> Claim:
    """The mean over seeds does not exceed a limit."""
    mean, worst = np.mean(values), f", worst seed {max(values):+.4f}" if len(values) > 1 else ""
    holds = None if np.isnan(mean) else bool(mean <= limit)
    return Claim(f"{what}, at most {limit:+g}", f"{mean:+.4f}{worst}", holds)


def faster(times: float, measured: float, what: str) -> Claim:
    """The measured ratio of speeds is at least `times`."""
    holds = None if np.isnan(measured) else bool(measured >= times)
    return Claim(f"at least {times:,g}× as fast as {what}", f"{measured:,.1f}×", holds)


def no_worse(what: str, ours: float, theirs: float, *, by: float = 0.0) -> Claim:
    """Our score is higher than theirs by at most `by`. Lower is better."""
    sentence = f"{what}, no higher" if not by else f"{what}, higher by at most {by:.2g}"
    holds = None if np.isnan(theirs) else bool(ours <= theirs + by)
    return Claim(sentence, f"{ours:.4f} against {theirs:.4f}", holds)


def on_average(
    what: str, ours: Sequence[float], theirs: Sequence[float], *, by: float = 0.0
) -> Claim:
    """Over several splits, the mean of our scores is higher than theirs by at most `by`."""
    claim = no_worse(what, float(np.mean(ours)), float(np.mean(theirs)), by=by)
    return claim._replace(measured=f"{claim.measured}{_worst(ours, theirs)}")


def everywhere(what: str, ours: Sequence[float], theirs: Sequence[float], *, by: float) -> Claim:
    """On every seed our score is higher than theirs by at most `by`."""
    mean = no_worse(what, float(np.mean(ours)), float(np.mean(theirs)), by=by)
    holds = mean.holds and all(a <= b + by for a, b in zip(ours, theirs, strict=True))
    measured = f"{mean.measured}{_worst(ours, theirs)}"
    return Claim(f"{mean.sentence} on every seed", measured, holds)


def _worst(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The largest difference, if there are several."""
    if len(ours) == 1:
        return ""
    return f", worst {max(a - b for a, b in zip(ours, theirs, strict=True)):+.4f}"
