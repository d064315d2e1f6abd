"""Samples: sunspots, one month at a time, beside everything that learns from single samples.

The others keep the hyperparameters that the warm-up gave them; ours also learns them on the way.
"""

import numpy as np

from streamgp_lab.experiments.solar import EXPERIMENT
from streamgp_lab.races.comparison import OURS, Claim, Comparison, Race, Results, at_least, no_worse
from streamgp_lab.races.contender import Entry
from streamgp_lab.races.problem import of_experiment
from streamgp_lab.races.tables import at_end, ratios

ONLINE, KALMAN = "GPyTorch, online variational conditioning", "Kalman filter, NumPy"
SINGLE, KEPT = "streamgp, single updates", "streamgp, points given, hyperparameters kept"
_SETTINGS = {"kernel": "matern32", "budget": 64}
_POINTS = 128  # where they are given: spread over the stretch that the stream will cover


def races(share: float) -> list[Race]:
    problem = of_experiment(EXPERIMENT, share)
    assert problem.single is not None
    capacity = len(problem.train[0].y) + len(problem.single.y)
    entries = [
        Entry(OURS, "ours", settings={**_SETTINGS, "many": True}, rehearsed=True),
        Entry(SINGLE, "ours", settings=_SETTINGS, rehearsed=True),
        Entry(
            KEPT, "ours", rehearsed=True,
            settings={
                "kernel": "matern32", "grid": [*problem.span[0], _POINTS], "many": True,
                "kept": True,
            },
        ),
        Entry(KALMAN, "kalman"),
        Entry("river, Bayesian linear regression", "river_linear"),
        Entry(
            "streaming sparse GP (ours), points added", "streaming_sparse",
            settings={"kernel": "matern32", "first": 60, "more": 0.125},
        ),
        Entry("tinygp, exact, refitted", "tinygp_exact", settings={"capacity": capacity}),
        Entry("scikit-learn, exact, refitted", "sklearn_exact"),
        Entry("GPyTorch, exact, conditioned", "gpytorch_exact", "gpytorch"),
        Entry(ONLINE, "gpytorch_online", "gpytorch"),
    ]  # fmt: skip
    return [Race(problem, entries, claims)]


def claims(results: Results) -> list[Claim]:
    """What single samples are to show."""

    def faster(than: str, which: str) -> float:
        return float(np.median(ratios(results[than], results[which], at_end)))

    def prequential(name: str) -> float:
        return float(np.median([run.prequential for run in results[name]]))

    return [
        at_least(1000, faster(ONLINE, OURS), f"as {ONLINE}, through `update_many`"),
        at_least(1000, faster(ONLINE, KEPT), f"as {ONLINE}, hyperparameters kept by both"),
        at_least(30, faster(ONLINE, SINGLE), f"as {ONLINE}, through single updates"),
        at_least(1, faster(KALMAN, KEPT), f"as {KALMAN}, hyperparameters kept by both"),
        no_worse(f"prequential NLPD, to {ONLINE}", prequential(OURS), prequential(ONLINE)),
        no_worse(
            f"the same, hyperparameters kept, to {ONLINE}", prequential(KEPT), prequential(ONLINE)
        ),
    ]


COMPARISON = Comparison(
    name="samples",
    about="One-sample updates: sunspots month by month, 319 to warm up and 1,000 one by one.",
    races=races,
)
