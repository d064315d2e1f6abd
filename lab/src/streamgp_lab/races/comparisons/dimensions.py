"""Dimensions: several inputs in fifty batches, either drifting or shuffled."""

import numpy as np

from streamgp_lab.datasets import files
from streamgp_lab.problem import Problem, split
from streamgp_lab.races.benchmark import comparison
from streamgp_lab.races.contender import Contender
from streamgp_lab.races.race import OURS, Race, Results
from streamgp_lab.reporting.claims import Claim, faster, no_worse

OFFLINE = "GPflow SVGP, on everything at once"
BATCHES, POINTS, TEST_SHARE = 50, 128, 0.1
EVERY = 1000  # rows between two M steps of streamgp
FINER = "streamgp, points placed more finely"
_CLOSE = 0.02  # relative to the offline model


REGRESSION = {
    "powerplant": files.powerplant,
    "protein": files.protein,
    "winequality": files.winequality,
    "compactiv": files.compactiv,
    "puma32h": files.puma32h,
}


def problem(name: str, *, drift: bool, share: float, seed: int = 0) -> Problem:
    """A standardised table. With `drift`, rows are sorted by their first principal component."""
    x, y = REGRESSION[name]()
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))[: int(len(y) * share)]
    x, y = x[order], y[order]
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    test = generator.uniform(size=len(y)) < TEST_SHARE
    if drift:
        order = np.argsort(x @ np.linalg.svd(x, full_matrices=False)[2][0])
        x, y, test = x[order], y[order], test[order]
    parts = np.array_split(np.arange(len(y)), BATCHES)
    return Problem(*split(x, y, test, parts))


def races(share: float) -> list[Race]:
    return [
        _race(name, drift=drift, share=share, finer=finer)
        for name, finer in (("powerplant", True), ("protein", False))
        for drift in (True, False)
    ]


def _race(name: str, *, drift: bool, share: float, finer: bool) -> Race:
    """Contenders that learn the stream, and one that gets all of it at once.

    With `finer`, streamgp also runs with a smaller tolerance. That makes sense if its points do not
    fill the budget.
    """
    stream = problem(name, drift=drift, share=share)
    settings, own = {"points": POINTS}, {"budget": POINTS, "every": EVERY}
    more = Contender(FINER, "ours", settings={**own, "tolerance": 1e-5}, rehearsed=True)
    contenders = [
        Contender(OURS, "ours", settings=own, rehearsed=True),
        *([more] if finer else []),
        Contender(
            "GPyTorch SVGP, the new batch alone", "gpytorch_variational", "gpytorch",
            {**settings, "span": stream.span, "steps": 25},
        ),
        Contender(OFFLINE, "gpflow_offline", "gpflow", settings, everything=True),
    ]  # fmt: skip
    title = f"{name}, {'drifting' if drift else 'shuffled'}"
    return Race(title, stream, contenders, claims, once=True)


def claims(results: Results) -> list[Claim]:
    """What is claimed of several inputs, for both ways of placing points."""
    ways = [name for name in (OURS, FINER) if name in results]
    return [claim for name in ways for claim in _of(name, results)]


def _of(name: str, results: Results) -> list[Claim]:
    ours, theirs = results[name][0], results[OFFLINE][0]
    rmse, nlpd = (abs(_CLOSE * figure) for figure in (theirs.final.error, theirs.final.nlpd))
    offline = "compared with the offline model"
    retained = "NLPD of the first batch at the end, compared with when it was learned"
    said = [
        no_worse(f"RMSE {offline}", ours.final.error, theirs.final.error, by=rmse),
        no_worse(f"NLPD {offline}", ours.final.nlpd, theirs.final.nlpd, by=nlpd),
        faster(10, theirs.total / ours.total, "the offline model, all updates together"),
        no_worse(retained, ours.oldest_now, ours.oldest_first),
    ]
    return [claim.of(name) for claim in said]


BENCHMARK = comparison(
    "dimensions",
    "Four and nine inputs in fifty batches, sorted by the first principal component or shuffled.",
    races,
)
