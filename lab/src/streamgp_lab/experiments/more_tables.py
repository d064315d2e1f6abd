"""Tables that only some experiments have: every batch of a channel, and ground never learned."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from streamgp_lab.experiments.protocol import Outcome, Run
from streamgp_lab.reporting.tables import Table, mean, mean_and_deviation
from streamgp_lab.scores import Score


def every_batch(outcomes: Sequence[Outcome], channel: str) -> Table:
    """NLPD of the held-out data of each batch, when it was learned and at the end."""
    numbers = range(1, len(outcomes[0].problem.test) + 1)
    rows = [[method, *_batches(runs, channel)] for method, runs in succeeded(outcomes).items()]
    caption = f"{channel}: NLPD of each batch, when it was learned → at the end"
    return Table(caption, ["method", *(f"batch {number}" for number in numbers)], rows)


def _batches(runs: list[Run], channel: str) -> list[str]:
    """One cell per batch; a method that got all batches at once has only the end."""
    steps, cells = len(runs[0].scores[channel]), []
    for batch, score in enumerate(runs[0].scores[channel][-1]):
        when = [-1] if steps == 1 else [batch, -1]
        found = [mean([_nlpd(run.scores[channel][step][batch]) for run in runs]) for step in when]
        cells.append("" if score is None else " → ".join(found))
    return cells


def _nlpd(score: Score | None) -> float:
    return np.nan if score is None else score.nlpd


def gap(
    outcomes: Sequence[Outcome],
    channel: str,
    caption: str,
    more: Mapping[str, Callable[[Outcome, Run], float]] = MappingProxyType({}),
) -> Table:
    """The scores at the end on ground that is never learned. `more` has further columns."""
    heading = ["method", "NLPD per point", "RMSE", "share in 95% intervals", *more]
    rows = []
    for method, runs in succeeded(outcomes).items():
        scores = [run.gap[channel] for run in runs]
        cells = [mean_and_deviation([s.nlpd for s in scores])]
        cells += [mean_and_deviation([s.error for s in scores]), mean([s.coverage for s in scores])]
        for measure in more.values():
            cells.append(mean([measure(o, r) for o, r in zip(outcomes, runs, strict=True)]))
        rows.append([method, *cells])
    return Table(caption, heading, rows)


def succeeded(outcomes: Sequence[Outcome]) -> dict[str, list[Run]]:
    """The runs of each method that never failed."""
    runs = {name: [outcome.runs[name] for outcome in outcomes] for name in outcomes[0].runs}
    return {name: own for name, own in runs.items() if not any(run.reason for run in own)}
