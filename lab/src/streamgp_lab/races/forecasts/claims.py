"""What is claimed of forecasts, and whether it holds."""

from collections.abc import Mapping, Sequence

import numpy as np

from streamgp_lab.races.forecasts.methods import ARIMA, ETS, LAST, OURS, PLAIN, SEASONS
from streamgp_lab.races.forecasts.rolling import Run, Scores
from streamgp_lab.reporting.claims import Claim

Outcomes = Mapping[str, Mapping[str, Run]]  # by series and method

HORIZONS = ("one step ahead", "a season ahead")
_NEARLY = 1.03  # within 3 per cent
_COVERAGE = (0.92, 0.98)
_CHEAPER = 20


def of(outcomes: Outcomes) -> list[Claim]:
    """All claims, horizon by horizon."""
    found = []
    for far, horizon in enumerate(HORIZONS):
        own = [_beats_last(outcomes, far), _is_best(outcomes, far), _rank(outcomes, far)]
        found += [claim.of(horizon) for claim in (*own, *_coverage(outcomes, far))]
    return [*found, *_cheaper(outcomes)]


def relative(runs: Mapping[str, Run], far: int) -> dict[str, float]:
    """The CRPS of each method that has one, relative to that of the last value."""
    last = runs[LAST].scores[far].crps
    return {name: run.scores[far].crps / last for name, run in runs.items() if run.scores}


def _beats_last(outcomes: Outcomes, far: int) -> Claim:
    ratios = [relative(runs, far)[PLAIN] for runs in outcomes.values()]
    better, worst = sum(ratio < 1 for ratio in ratios), max(ratios)
    return Claim(
        f"{PLAIN} has a lower CRPS than the last value on nine of ten series and is nowhere "
        "worse by more than 3%",
        f"lower on {better} of {len(ratios)}, at worst {worst:.2f} times as high",
        better >= 0.9 * len(ratios) and worst <= _NEARLY,
    )


def _is_best(outcomes: Outcomes, far: int) -> Claim:
    near = 0
    for runs in outcomes.values():
        ratios = relative(runs, far)
        near += ratios[SEASONS] <= _NEARLY * min(ratios.values())
    return Claim(
        f"{SEASONS} has the lowest CRPS or one within 3% of it on seven of ten series",
        f"on {near} of {len(outcomes)}",
        near >= 0.7 * len(outcomes),
    )


def ranks(outcomes: Outcomes, far: int) -> dict[str, float]:
    """The mean rank of each method in CRPS; of ours, the one with seasons takes part."""
    total: dict[str, list[int]] = {}
    for runs in outcomes.values():
        ratios = {name: r for name, r in relative(runs, far).items() if name != PLAIN}
        for rank, name in enumerate(sorted(ratios, key=ratios.__getitem__), 1):
            total.setdefault(name, []).append(rank)
    return {name: float(np.mean(each)) for name, each in total.items()}


def _rank(outcomes: Outcomes, far: int) -> Claim:
    found = ranks(outcomes, far)
    others = {name: rank for name, rank in found.items() if name != SEASONS}
    best = min(others, key=others.__getitem__)
    return Claim(
        f"{SEASONS} has the best rank on average",
        f"{found[SEASONS]:.2f}, the best other {others[best]:.2f} ({best})",
        found[SEASONS] <= others[best],
    )


def _coverage(outcomes: Outcomes, far: int) -> list[Claim]:
    return [_within(name, [runs[name].scores[far] for runs in outcomes.values()]) for name in OURS]


def _within(name: str, scores: Sequence[Scores]) -> Claim:
    low, high = _COVERAGE
    shares = [each.calibrated for each in scores]
    inside = sum(low <= share <= high for share in shares)
    return Claim(
        f"calibrated 95% intervals of {name} hold 92 to 98% of the values of every series",
        f"{min(shares):.0%} to {max(shares):.0%}, in the range on {inside} of {len(shares)}",
        inside == len(shares),
    )


def _cheaper(outcomes: Outcomes) -> list[Claim]:
    longest = max(outcomes, key=lambda name: outcomes[name][LAST].length)
    runs = outcomes[longest]
    return [
        Claim(
            f"at the end of the longest series ({longest}), an update is at least "
            f"{_CHEAPER} times as cheap as a refit of {name}",
            f"{runs[name].refit / runs[PLAIN].late:.1f} times",
            bool(runs[name].refit >= _CHEAPER * runs[PLAIN].late),
        )
        for name in (ETS, ARIMA)
    ]
