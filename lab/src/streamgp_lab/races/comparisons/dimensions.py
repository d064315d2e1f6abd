"""Dimensions: several inputs in many batches, either drifting or shuffled, against offline models.

streamgp keeps rows, as many as it does by default; the others have the same number of inducing
points each. The tables are split into training and held-out rows several times.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from streamgp_lab.datasets import files
from streamgp_lab.experiments import banana
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.problem import Problem, split
from streamgp_lab.races.benchmark import comparison
from streamgp_lab.races.contender import Contender
from streamgp_lab.races.race import OURS, Race, Result, Results
from streamgp_lab.reporting.claims import Claim, everywhere, faster, on_average

COLLAPSED = "collapsed sparse GP with learned points (ours), on everything at once"
GPFLOW = "GPflow SVGP, on everything at once"
GPYTORCH = "GPyTorch SVGP, on everything at once"
OFFLINE = "streamgp, on everything at once"
PEERS = (GPFLOW, GPYTORCH)
REFERENCES = (COLLAPSED, *PEERS)

REGRESSION = {
    "powerplant": files.powerplant,
    "protein": files.protein,
    "winequality": files.winequality,
    "compactiv": files.compactiv,
    "puma32h": files.puma32h,
}
CLASSES = {"defects": files.defects}
SPLITS, POINTS = 5, 128
STEPS = 20_000  # the most steps of a peer's training, if it learns all rows
_BATCHES, _CLASS_BATCHES, _FEWEST = 50, 20, 40  # the last: rows of a batch of a small share
_TEST_SHARE, _CLASS_TEST_SHARE = 0.1, 0.3
_CLOSE = {False: 0.02, True: 0.05}  # relative to the reference, when shuffled and drifting
_SMALL = 0.1  # NLPDs nearer to zero count as that large
_NLPD_LIMIT, _ERROR_LIMIT = 0.002, 0.003  # for classes


def problem(name: str, *, drift: bool, share: float, seed: int = 0) -> Problem:
    """A standardised table. With `drift`, rows are sorted by their first principal component.

    Seeds differ in the held-out rows and in the order of the others.
    """
    x, y = _table(name)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))[: int(len(y) * share)]
    x, y = _standardised(x[order]), y[order]
    if name in REGRESSION:
        y = _standardised(y)
    held_out = _CLASS_TEST_SHARE if name in CLASSES else _TEST_SHARE
    test = generator.uniform(size=len(y)) < held_out
    if drift:
        order = np.argsort(x @ np.linalg.svd(x, full_matrices=False)[2][0])
        x, y, test = x[order], y[order], test[order]
    most = _CLASS_BATCHES if name in CLASSES else _BATCHES
    parts = np.array_split(np.arange(len(y)), min(most, max(len(y) // _FEWEST, 2)))
    return Problem(*split(x, y, test, parts))


@cache
def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    return (REGRESSION | CLASSES)[name]()


def _standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def races(share: float) -> list[Race]:
    return [
        *(_regression(name, drift=drift, share=share) for name in REGRESSION for drift in _CLOSE),
        _classification(
            "banana", [banana.problem(Options(share=share, seed=s)) for s in range(SPLITS)], share
        ),
        *(
            _classification(name, _splits(name, drift=False, share=share), share)
            for name in CLASSES
        ),
    ]


def _splits(name: str, *, drift: bool, share: float) -> list[Problem]:
    return [problem(name, drift=drift, share=share, seed=seed) for seed in range(SPLITS)]


def _regression(name: str, *, drift: bool, share: float) -> Race:
    """A stream, one peer that learns it too, and models that get all of it at once.

    Peers take minutes to train, so that they learn the first split only.
    """
    problems = _splits(name, drift=drift, share=share)
    points = {"points": POINTS}
    training = {**points, "steps": int(STEPS * share)}
    contenders = [
        Contender(OURS, "ours"),
        Contender(
            "GPyTorch SVGP, the new batch alone", "gpytorch_variational", "gpytorch",
            {**points, "span": problems[0].span, "steps": 25}, only_first=True,
        ),
        Contender(COLLAPSED, "collapsed_offline", settings=points, everything=True),
        Contender(
            GPFLOW, "gpflow_offline", "gpflow", training, everything=True, only_first=True
        ),
        Contender(
            GPYTORCH, "gpytorch_offline", "gpytorch", training, everything=True, only_first=True
        ),
    ]  # fmt: skip
    title = f"{name}, {'drifting' if drift else 'shuffled'}"
    return Race(title, problems, contenders, claims(_CLOSE[drift]), once=True)


def _classification(name: str, problems: list[Problem], share: float) -> Race:
    own = {"kind": "binary"}
    contenders = [
        Contender(OURS, "ours", settings=own),
        Contender(
            OFFLINE, "ours", settings={**own, "rounds": 20, "evaluations": 60}, everything=True
        ),
        Contender(
            GPFLOW, "gpflow_offline", "gpflow",
            {"kind": "binary", "points": POINTS, "steps": int(STEPS * share)}, everything=True,
        ),
    ]  # fmt: skip
    return Race(f"{name}, classes", problems, contenders, class_claims, once=True)


def claims(close: float) -> Callable[[Results], list[Claim]]:
    """What is claimed of numbers. `close` is relative to the best reference of each split."""

    def of(results: Results) -> list[Claim]:
        rmse, nlpd = best(results, _error), best(results, _nlpd)
        size = max(abs(float(np.mean(nlpd))), _SMALL)
        near = close * float(np.mean(rmse)), close * size
        small = f"; {close:.0%} of it, or of {_SMALL:g} if it is nearer to zero"
        reference = "compared with the best reference"
        ours = results[OURS]
        return [
            on_average(f"RMSE {reference} ({close:.0%})", [*map(_error, ours)], rmse, by=near[0]),
            on_average(f"NLPD {reference}{small}", [*map(_nlpd, ours)], nlpd, by=near[1]),
            faster(10, _speed(results), "the faster peer's training, all updates together"),
            _retained(results),
        ]

    return of


def class_claims(results: Results) -> list[Claim]:
    """What is claimed of classes."""
    ours, said = results[OURS], []
    for name in (OFFLINE, GPFLOW):
        theirs = results[name]
        pairs = [*map(_nlpd, ours)], [*map(_nlpd, theirs)]
        said.append(everywhere(f"NLPD compared with {name}", *pairs, by=_NLPD_LIMIT))
        pairs = [*map(_error, ours)], [*map(_error, theirs)]
        said.append(everywhere(f"error rate compared with {name}", *pairs, by=_ERROR_LIMIT))
    return said


def best(results: Results, pick: Callable[[Result], float]) -> list[float]:
    """The lowest score of those references that learned a split, for each split."""
    found = []
    for number in range(len(results[OURS])):
        runs = [results[name][number] for name in REFERENCES if number < len(results[name])]
        scores = [score for score in map(pick, runs) if np.isfinite(score)]
        found.append(min(scores, default=np.nan))
    return found


def _speed(results: Results) -> float:
    """The training time of the faster peer in units of ours, over the splits that it learned."""
    ratios = []
    for name in PEERS:
        pairs = zip(results[name], results[OURS], strict=False)
        totals = np.array([(theirs.total, ours.total) for theirs, ours in pairs])
        ratios.append(totals[:, 0].sum() / totals[:, 1].sum())
    return float(np.min(ratios))


def _retained(results: Results) -> Claim:
    """The first batch at the end, against when it was learned or the reference."""
    ours = results[OURS]
    now, reference = [run.oldest_now for run in ours], best(results, lambda run: run.oldest_now)
    first = [run.oldest_first for run in ours]
    what = "NLPD of the first batch at the end, compared with"
    if np.mean(first) >= np.mean(reference):
        return on_average(f"{what} when it was learned", now, first)
    return on_average(f"{what} the best reference", now, reference)


def _nlpd(run: Result) -> float:
    return run.final.nlpd


def _error(run: Result) -> float:
    return run.final.error


BENCHMARK = comparison(
    "dimensions",
    "Tables of 4 to 32 inputs in fifty batches, sorted by the first principal component or "
    "shuffled, and two tables of classes.",
    races,
)
