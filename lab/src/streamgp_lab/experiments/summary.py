"""The report of an experiment over its seeds: tables, claims and pictures."""

from collections.abc import Sequence

import numpy as np

from streamgp_lab.experiments import pictures
from streamgp_lab.experiments.experiment import Printed
from streamgp_lab.experiments.methods import EXACT, OFFLINE
from streamgp_lab.experiments.protocol import Outcome, Run
from streamgp_lab.reporting.claims import Claim, at_most
from streamgp_lab.reporting.report import Picture, Report
from streamgp_lab.reporting.tables import Table, mean, mean_and_deviation, number
from streamgp_lab.scores import NO_SCORE, Score, pooled

_CLOSE = 0.02  # NLPD per point


def report(outcomes: Sequence[Outcome], cpu: float = np.nan) -> Report:
    """Everything that is written about an experiment; the pictures are of the first seed.

    `cpu` is the CPU time that all of it took, in seconds.
    """
    first = outcomes[0]
    drawn = dict(first.experiment.pictures)
    if len(first.problem.train) > 1 and any(len(r.seconds) > 1 for r in first.runs.values()):
        drawn["The first batch as others follow"] = pictures.retention
    return Report(
        name=first.experiment.name,
        about=first.experiment.about,
        note=first.problem.note,
        parts=[
            f"Seeds: {len(outcomes)}. CPU seconds: {number(cpu)}.",
            *tables(outcomes),
            claims(outcomes),
            *(Picture(caption, draw(first)) for caption, draw in drawn.items()),
        ],
        measured={"cpu": cpu, "seeds": [_numbers(outcome) for outcome in outcomes]},
    )


def _numbers(outcome: Outcome) -> dict[str, dict]:
    kept = ("scores", "gap", "singles", "seconds", "points", "reason")
    return {name: {key: getattr(run, key) for key in kept} for name, run in outcome.runs.items()}


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """Every table of an experiment, from its outcomes with several seeds."""
    experiment, channels = outcomes[0].experiment, outcomes[0].problem.channels
    found = [_comparison(outcomes, name, many=len(channels) > 1) for name in channels]
    if experiment.printed is not None:
        found += [
            _beside_printed(outcomes, name, experiment.printed) for name in experiment.printed.rows
        ]
    return found if experiment.more is None else found + experiment.more(outcomes)


def _comparison(outcomes: Sequence[Outcome], channel: str, *, many: bool) -> Table:
    """Every method on one channel."""
    first = outcomes[0]
    single = first.problem.single is not None
    in_gap = channel in first.problem.gap
    heading = ["method", "NLPD per point", "minus offline model"]
    heading.append("first batch: when learned → at the end")
    heading += ["prequential NLPD"] * single + ["NLPD in the gap"] * in_gap
    heading += [_error_name(first, channel), "share in 95% intervals", "M", "fastest update, CPU s"]
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
    differences = [s.nlpd - r for s, r in zip(final, reference, strict=True)]
    cells = [
        mean_and_deviation(scores) if np.isfinite(scores).any() else "diverged",
        mean_and_deviation(differences, signed=True),
        f"{mean(oldest[:, 0])} → {mean(oldest[:, 1])}" if streamed else mean(oldest[:, 1]),
    ]
    if single:
        cells.append(mean_and_deviation([run.prequential(channel) for run in runs]))
    if in_gap:
        cells.append(mean_and_deviation([run.gap[channel].nlpd for run in runs]))
    sizes = [run.points for run in runs if run.points]
    seconds = [s for run in runs for s in (run.seconds[-1:] if single else run.seconds)]
    return [
        *cells,
        mean_and_deviation([s.error for s in final]),
        mean([s.coverage for s in final]),
        f"{np.mean(sizes):.0f}" if sizes else "",
        f"{min(seconds):.2g}",
    ]


def _reference(outcome: Outcome, channel: str) -> float:
    run = outcome.runs.get(OFFLINE)
    return np.nan if run is None or run.reason else run.final(channel).nlpd


def _error_name(outcome: Outcome, channel: str) -> str:
    return "RMSE" if np.isfinite(outcome.ours.final(channel).coverage) else "error rate"


def _beside_printed(outcomes: Sequence[Outcome], channel: str, printed: Printed) -> Table:
    """Our scores in the layout of a table of the paper.

    Each cell has the NLPD per point, the number that the paper's way of scoring gives, and the
    paper's own number.
    """
    heading = ["step", "new", *[f"t' = {b}" for b in printed.old], "global"]
    rows = []
    for step, theirs in enumerate(printed.rows[channel]):
        ours = [_row(outcome.ours, channel, step, printed) for outcome in outcomes]
        if not all(ours):
            break
        cells = []
        for scores, there in zip(zip(*ours, strict=True), theirs, strict=True):
            if there is None:
                cells.append("")
                continue
            as_printed = np.mean([s.printed for s in scores]) / printed.unit
            cells.append(f"{mean([s.nlpd for s in scores])} · {as_printed:.2f} ({there:.2f})")
        rows.append([f"t = {step + 1}", *cells])
    unit = f" in units of {printed.unit:g}" if printed.unit != 1 else ""
    of = f", {channel}" if len(printed.rows) > 1 else ""
    how = f"NLPD per point · computed as in the paper{unit} (the paper's number)"
    return Table(f"{printed.caption}{of}: {how}", heading, rows)


def _row(run: Run, channel: str, step: int, printed: Printed) -> list[Score]:
    """New, old …, global at one step; no score in a column that has not begun."""
    if step >= len(run.scores[channel]):
        return []
    known = run.scores[channel][step]
    chosen = [known[step], *[known[b - 1] if b <= step else None for b in printed.old]]
    everything = pooled([s for s in known if s is not None])
    return [NO_SCORE if s is None else s for s in (*chosen, everything)]


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """What is claimed of our model, on each channel."""
    ours = [outcome.ours for outcome in outcomes]
    if any(run.reason for run in ours):
        return [Claim("streamgp runs", ours[0].reason, False)]
    said = []
    for channel in outcomes[0].problem.channels:
        gaps = [o.ours.final(channel).nlpd - _reference(o, channel) for o in outcomes]
        said.append(at_most(_CLOSE, gaps, f"{channel}: NLPD minus that of the offline model"))
        drift = [now - first for first, now in (run.oldest(channel) for run in ours)]
        what = "NLPD of the first batch at the end, minus when it was learned"
        said.append(at_most(_CLOSE, drift, f"{channel}: {what}"))
        for method, best in _best_stream(outcomes, channel).items():
            what = f"NLPD minus that of the best streaming baseline ({method})"
            said.append(at_most(_CLOSE, best, f"{channel}: {what}"))
    return said


def _best_stream(outcomes: Sequence[Outcome], channel: str) -> dict[str, list[float]]:
    """The best other streaming method that never failed, and our NLPD minus its NLPD."""
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
