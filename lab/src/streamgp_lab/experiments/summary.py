"""Tables of an experiment over seeds: rows of cells, and what they say of the claims."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamgp_lab.experiments.methods import EXACT, OFFLINE
from streamgp_lab.experiments.problem import Printed
from streamgp_lab.experiments.protocol import Outcome, Run
from streamgp_lab.experiments.scores import pooled

_CLOSE = 0.02  # NLPD a point


class Table(NamedTuple):
    """A caption, a heading and rows of text."""

    caption: str
    heading: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        body = "\n".join("| " + " | ".join(row) + " |" for row in lines)
        return f"**{self.caption}**\n\n{body}\n"


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """Every table of an experiment, from its outcomes on several seeds."""
    experiment, channels = outcomes[0].experiment, outcomes[0].problem.channels
    found = [_comparison(outcomes, name, many=len(channels) > 1) for name in channels]
    if experiment.printed is not None:
        found += [
            _beside_printed(outcomes, name, experiment.printed, as_printed)
            for name in experiment.printed.rows
            for as_printed in (False, True)
        ]
    return found


def _comparison(outcomes: Sequence[Outcome], channel: str, *, many: bool) -> Table:
    """Every method on one channel."""
    first = outcomes[0]
    single = first.problem.single is not None
    in_gap = channel in first.problem.gap
    heading = ["method", "NLPD a point", "less offline", "oldest batch, first → now"]
    heading += ["prequential NLPD"] * single + ["NLPD in the gap"] * in_gap
    heading += [_error_name(first, channel), "95% intervals hold", "M", "fastest update, CPU s"]
    rows = []
    for method in first.runs:
        runs = [outcome.runs[method] for outcome in outcomes]
        failed = [run for run in runs if run.reason]
        if failed:
            share = "" if len(failed) == len(runs) else f" ({len(failed)} of {len(runs)} seeds)"
            rows.append([method, failed[0].reason + share, *[""] * (len(heading) - 2)])
        else:
            rows.append([method, *_cells(outcomes, runs, channel, single, in_gap)])
    return Table(f"Every method{f': {channel}' if many else ''}", heading, rows)


def _cells(
    outcomes: Sequence[Outcome], runs: list[Run], channel: str, single: bool, in_gap: bool
) -> list[str]:
    final = [run.final(channel) for run in runs]
    reference = [_reference(outcome, channel) for outcome in outcomes]
    oldest = np.array([run.oldest(channel) for run in runs])
    streamed = len(runs[0].scores[channel]) > 1
    scores = [s.nlpd for s in final]
    cells = [
        _spread(scores) if np.isfinite(scores).any() else "diverged",
        _spread([s.nlpd - r for s, r in zip(final, reference, strict=True)], signed=True),
        f"{_mean(oldest[:, 0])} → {_mean(oldest[:, 1])}" if streamed else _mean(oldest[:, 1]),
    ]
    if single:
        cells.append(_spread([run.prequential(channel) for run in runs]))
    if in_gap:
        cells.append(_spread([run.gap[channel].nlpd for run in runs]))
    sizes = [run.points for run in runs if run.points]
    seconds = [s for run in runs for s in (run.seconds[-1:] if single else run.seconds)]
    return [
        *cells,
        _spread([s.error for s in final]),
        _mean([s.coverage for s in final]),
        f"{np.mean(sizes):.0f}" if sizes else "",
        f"{min(seconds):.2g}",
    ]


def _reference(outcome: Outcome, channel: str) -> float:
    run = outcome.runs.get(OFFLINE)
    return np.nan if run is None or run.reason else run.final(channel).nlpd


def _error_name(outcome: Outcome, channel: str) -> str:
    return "RMSE" if np.isfinite(outcome.ours.final(channel).coverage) else "error rate"


def _beside_printed(
    outcomes: Sequence[Outcome], channel: str, printed: Printed, as_printed: bool
) -> Table:
    """Our table in the paper's layout: a point's mean, or as the paper computed it, beside it."""
    heading = ["step", "new", *[f"t' = {b}" for b in printed.old], "global"]
    rows = []
    for step, theirs in enumerate(printed.rows[channel]):
        ours = [_row(outcome.ours, channel, step, printed, as_printed) for outcome in outcomes]
        if len(ours[0]) == 0:
            break
        values = np.array(ours) / (printed.unit if as_printed else 1.0)
        cells = []
        for column, there in zip(values.T, theirs, strict=True):
            both = f"{np.mean(column):.2f} ({there:.2f})" if there is not None else ""
            shown = _spread(column) if there is not None else ""
            cells.append(both if as_printed else shown)
        rows.append([f"t = {step + 1}", *cells])
    unit = f", in units of {printed.unit:g}" if as_printed and printed.unit != 1 else ""
    how = f"as the paper computes it (and printed){unit}" if as_printed else "NLPD a point"
    of = f", {channel}" if len(printed.rows) > 1 else ""
    return Table(f"{printed.caption}{of}: streamgp, {how}", heading, rows)


def _row(run: Run, channel: str, step: int, printed: Printed, as_printed: bool) -> list[float]:
    """New, old …, global at one step; NaN where a column has not begun."""
    if step >= len(run.scores[channel]):
        return []
    known = run.scores[channel][step]
    chosen = [known[step], *[known[b - 1] if b <= step else None for b in printed.old]]
    everything = pooled([s for s in known if s is not None])
    which = "printed" if as_printed else "nlpd"
    return [np.nan if s is None else getattr(s, which) for s in (*chosen, everything)]


def claims(outcomes: Sequence[Outcome]) -> list[str]:
    """What the tables say of our model, in sentences, kept or not."""
    said = []
    for channel in outcomes[0].problem.channels:
        ours = [outcome.ours for outcome in outcomes]
        if any(run.reason for run in ours):
            return [f"streamgp failed: {ours[0].reason}"]
        gaps = [o.ours.final(channel).nlpd - _reference(o, channel) for o in outcomes]
        said.append(_claim(f"{channel}: less the offline model", gaps))
        drift = [now - first for first, now in (run.oldest(channel) for run in ours)]
        said.append(_claim(f"{channel}: the oldest batch now, less when first learned", drift))
        for method, best in _best_stream(outcomes, channel).items():
            said.append(_claim(f"{channel}: less the best streaming baseline ({method})", best))
    return said


def _best_stream(outcomes: Sequence[Outcome], channel: str) -> dict[str, list[float]]:
    """The strongest other streaming method that never failed, and how far we are above it."""
    streams = {
        name: [o.ours.final(channel).nlpd - o.runs[name].final(channel).nlpd for o in outcomes]
        for name, entry in outcomes[0].experiment.methods.items()
        if entry.streaming and not name.startswith(("streamgp", EXACT))
        and name in outcomes[0].runs and not any(o.runs[name].reason for o in outcomes)
    }  # fmt: skip
    finite = {name: gaps for name, gaps in streams.items() if np.isfinite(gaps).all()}
    if not finite:
        return {}
    best = max(finite, key=lambda name: np.mean(finite[name]))
    return {best: finite[best]}


def _claim(what: str, values: list[float]) -> str:
    worst = f", worst seed {max(values):+.4f}" if len(values) > 1 else ""
    verdict = "holds" if np.mean(values) <= _CLOSE else "does not hold"
    return f"{what}: {np.mean(values):+.4f}{worst} (at most +{_CLOSE} {verdict})"


def _mean(values: Sequence[float] | np.ndarray) -> str:
    mean = np.mean(values)
    return f"{mean:.3f}" if np.isfinite(mean) else "–"


def _spread(values: Sequence[float] | np.ndarray, *, signed: bool = False) -> str:
    values = np.asarray(values, float)
    if not np.isfinite(values).all():
        broken = (~np.isfinite(values)).sum()
        return "–" if broken == len(values) else f"diverged on {broken} of {len(values)} seeds"
    mean = f"{values.mean():+.4f}" if signed else f"{values.mean():.4f}"
    return mean if len(values) == 1 else f"{mean} ± {values.std():.4f}"
