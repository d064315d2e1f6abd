"""Samples: sunspots one month at a time, against methods that learn from single samples.

The others keep the hyperparameters that they learned from the first batch. streamgp also learns
them from the stream.
"""

import numpy as np

from streamgp_lab.experiments import solar
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.problem import rows
from streamgp_lab.races.benchmark import comparison
from streamgp_lab.races.contender import Contender
from streamgp_lab.races.race import OURS, Race, Results
from streamgp_lab.races.summary import at_end, ratios
from streamgp_lab.reporting.claims import Claim, faster, no_worse

ONLINE, KALMAN = "GPyTorch, online variational conditioning", "Kalman filter, NumPy"
SINGLE, KEPT = "streamgp, single updates", "streamgp, fixed points and hyperparameters"
PLAIN, CHAIN = "streamgp, no settings", "streamgp, chain, fixed hyperparameters"
_SETTINGS = {"kernel": "matern32"}
_POINTS = 128  # fixed points, spread over the range of the stream


def races(share: float) -> list[Race]:
    problem = solar.problem(Options(share=share))
    capacity = rows(problem.channels, *problem.train).size
    contenders = [
        Contender(OURS, "ours", settings={**_SETTINGS, "many": True}, rehearsed=True),
        Contender(SINGLE, "ours", settings=_SETTINGS, rehearsed=True),
        Contender(
            KEPT, "ours", rehearsed=True,
            settings={
                "kernel": "matern32", "grid": [*problem.span[0], _POINTS], "many": True,
                "kept": True,
            },
        ),
        Contender(PLAIN, "ours", settings={"kernel": "time", "many": True}, rehearsed=True),
        Contender(
            CHAIN, "ours", settings={**_SETTINGS, "many": True, "kept": True},
            rehearsed=True,
        ),
        Contender(KALMAN, "kalman"),
        Contender("river, Bayesian linear regression", "river_linear"),
        Contender(
            "streaming sparse GP (ours), points added", "streaming_sparse",
            settings={"kernel": "matern32", "first": 60, "more": 0.125},
        ),
        Contender("tinygp, exact, refitted", "tinygp_exact", "tinygp", {"capacity": capacity}),
        Contender("scikit-learn, exact, refitted", "sklearn_exact"),
        Contender("GPyTorch, exact, conditioned", "gpytorch_exact", "gpytorch"),
        Contender(ONLINE, "gpytorch_online", "gpytorch"),
    ]  # fmt: skip
    return [Race("solar", [problem], contenders, claims)]


def claims(results: Results) -> list[Claim]:
    """What is claimed of single samples."""

    def ratio(than: str, which: str) -> float:
        return float(np.median(ratios(results[than], results[which], at_end)))

    def prequential(name: str) -> float:
        return float(np.median([run.prequential for run in results[name]]))

    return [
        faster(1000, ratio(ONLINE, OURS), f"{ONLINE}, with `update_many`"),
        faster(1000, ratio(ONLINE, KEPT), f"{ONLINE}, both with fixed hyperparameters"),
        faster(30, ratio(ONLINE, SINGLE), f"{ONLINE}, with single updates"),
        faster(1, ratio(KALMAN, KEPT), f"{KALMAN}, both with fixed hyperparameters"),
        *(
            no_worse(
                f"prequential NLPD of {name}, compared with {ONLINE}",
                prequential(name),
                prequential(ONLINE),
            )
            for name in (OURS, PLAIN, KEPT)
        ),
    ]


BENCHMARK = comparison(
    "samples",
    "Updates with one sample: sunspots, 319 months in one batch, then 1,000 months one by one.",
    races,
)
