"""Three channels of one airport (temperature, rain, departures) arrive day by day.

Each channel arrives at its own pace and has a gap. The model learns every report and does not need
it again. The table at the end shows how well the first days were predicted when they had just been
learned, how well they are predicted now, and how well a model predicts that learned everything at
once. The picture shows, beside all days, what was forecast of the last one before it came.
"""

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import streamgp as sgp
from streamgp.cli import airport
from streamgp.online.report import UpdateReport

_OLDEST = float(airport.FIRST_REPORT)  # the first reports cover the days before this one


def run(*, out: Path, seed: int = 0) -> None:
    """Run the demonstration: print its table and write its picture.

    Args:
        out: The file of the picture.
        seed: The seed that chooses the held-out hours.

    Raises:
        ImportError: If the data set is missing.
    """
    console = Console()
    console.print(f"[bold]streamgp {sgp.__version__}[/bold]")
    for paragraph in str(__doc__).split("\n\n"):
        console.print(" ".join(paragraph.split()))
    data = airport.load(seed)
    begin = time.perf_counter()
    model = airport.model(seed)
    first, before = _stream(model, data, console)
    streamed = time.perf_counter() - begin
    with console.status("computing the reference: the same model, which learns everything at once"):
        offline = airport.model(seed)
        offline.update(airport.everything(data))
    console.print(_table(model, offline, data, first))
    console.print(
        f"{model!r}\nThe stream took {streamed:.0f} s. "
        f"Everything took {time.perf_counter() - begin:.0f} s."
    )
    console.print(_forecast(before, data))
    _picture(model, before, data, out)
    console.print(f"Picture: {out}")


def _stream(
    model: sgp.ContinualGP, data: dict[str, airport.Channel], console: Console
) -> tuple[dict[str, float], sgp.ContinualGP]:
    """Learn day by day.

    Returns:
        The NLPD of each channel's oldest days when they had just been learned, and the model as it
        was before the last day.
    """
    batches = list(airport.batches(data))
    first: dict[str, float] = {}
    before = model
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("{task.fields[last]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("days", total=len(batches), last="")
        for batch in batches:
            if batch is batches[-1]:
                before = sgp.from_bytes(model.to_bytes())
            report = model.update(batch)
            progress.update(task, advance=1, last=_line(report))
            for name, (t, _) in batch.items():
                if name not in first and t.max() >= _OLDEST - 1:
                    first[name] = airport.nlpd(model, name, data[name], _OLDEST)
    return first, before


def _line(report: UpdateReport) -> str:
    scores = ", ".join(f"{name} {-score:.2f}" for name, score in report.log_predictive.items())
    took = f"{report.seconds * 1e3:.0f} ms"
    return f"{report.kept_rows} rows; NLPD per new observation: {scores}; {took}"


def _table(
    model: sgp.ContinualGP,
    offline: sgp.ContinualGP,
    data: dict[str, airport.Channel],
    first: dict[str, float],
) -> Table:
    table = Table(title="Negative log predictive density per held-out hour (lower is better)")
    table.add_column("channel")
    for heading in (
        "oldest days,\nwhen first learned", "oldest days,\nnow", "oldest days,\noffline",
        "all days,\nnow", "all days,\noffline",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for name, channel in data.items():
        figures = (
            first[name],
            airport.nlpd(model, name, channel, _OLDEST),
            airport.nlpd(offline, name, channel, _OLDEST),
            airport.nlpd(model, name, channel),
            airport.nlpd(offline, name, channel),
        )
        table.add_row(name, *(f"{figure:.3f}" for figure in figures))
    return table


def _forecast(before: sgp.ContinualGP, data: dict[str, airport.Channel]) -> str:
    """How much of the last day lay in what was forecast of it, as a sentence."""
    held, (_, came) = [], _apart(data)
    for name in ("temperature", "departures"):
        t, y = (part[came[name][0] > before.latest] for part in came[name])
        low, high = before.predict(t, name).interval(0.95)
        held.append(f"{np.sum((low <= y) & (y <= high))} of {len(y)} hours of {name}")
    return f"The 95% bands of the day ahead held {' and '.join(held)}."


def _picture(
    model: sgp.ContinualGP, before: sgp.ContinualGP, data: dict[str, airport.Channel], out: Path
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(data), 2, figsize=(13, 2.6 * len(data)), sharex="col", width_ratios=(3, 1.5),
        layout="constrained",
    )  # fmt: skip
    last = airport.DAYS - max(airport.PACE.values())
    old, new = _learned(data, 0, last), _learned(data, last, airport.DAYS)
    axes = model.plot(data=new, past=old, ax=panels[:, 0])
    seen, came = _apart(data)
    ahead = airport.DAYS - before.latest
    before.plot_forecast(ahead, back=1.0, data=seen, later=came, legend=False, ax=panels[:, 1])
    panels[0, 1].set_title("the last day: forecast, and what came")
    for ax in panels[:-1].flat:
        ax.set_xlabel("")
    for ax, name in zip(axes, model.channels, strict=True):
        low, high = airport.GAPS[name]
        ax.axvspan(low, high, color="0.92", zorder=0)
        ax.text(0.5 * (low + high), 0.94, "gap", ha="center", va="top", color="0.4",
                transform=ax.get_xaxis_transform())  # fmt: skip
    for ax in panels[-1]:
        ax.set_xlabel(f"days since {airport.FIRST_DAY}")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    plt.close(figure)


def _learned(data: dict[str, airport.Channel], begin: float, end: float) -> airport.Batch:
    rows = {name: ~c.test & (c.t >= begin) & (c.t < end) for name, c in data.items()}
    return {name: (c.t[rows[name]], c.y[rows[name]]) for name, c in data.items()}


def _apart(data: dict[str, airport.Channel]) -> tuple[airport.Batch, airport.Batch]:
    """What was learned before the last day, and what each channel showed after its last report."""
    *earlier, _ = airport.batches(data)
    seen, came = {}, {}
    for name, channel in data.items():
        known = max(float(batch[name][0].max()) for batch in earlier if name in batch)
        later = channel.t > known
        learned = ~later & ~channel.test
        seen[name] = channel.t[learned], channel.y[learned]
        came[name] = channel.t[later], channel.y[later]
    return seen, came
