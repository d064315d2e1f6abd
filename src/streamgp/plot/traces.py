"""The reports of a stream, update by update: scores, inducing points and hyperparameters."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamgp.errors import DataError, problem
from streamgp.online.report import UpdateReport
from streamgp.plot import style

_MANY = (
    300.0  # the ratio of numbers from which on ticks between powers of ten get in each other's way
)


def scores(reports: Sequence[UpdateReport], *, rows: bool = False, ax: Any = None) -> Any:
    """Draw the prequential score of each channel: the log predictive density before learning.

    The line shows the mean of each update. A circle marks updates in which the channel `changed`.

    Args:
        reports: What `update` or `update_many` returned, in order.
        rows: Whether to show one dot per observation, in order, and their running mean, instead of
            one mean per update.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If there are no reports.
        ImportError: If matplotlib is missing.
    """
    _check(reports)
    ax = style.axes(ax)
    names = reports[-1].channels
    for name, look in zip(names, style.line_styles(len(names)), strict=True):
        heard = [report for report in reports if name in report.log_predictive]
        if not heard:
            continue
        if rows:
            _running(ax, np.concatenate([r.log_predictive_rows[name] for r in heard]), name, look)
            continue
        steps = np.array([report.update for report in heard])
        values = np.array([report.log_predictive[name] for report in heard])
        ax.plot(steps, values, marker=".", label=name, **look)
        changed = np.array([name in report.changed for report in heard])
        ax.plot(
            steps[changed], values[changed], "o", color=look["color"], fillstyle="none",
            markersize=9, zorder=3,
        )  # fmt: skip
    _finish(ax, "observation" if rows else "update", "log predictive density", len(names) > 1)
    return ax


def inducing(reports: Sequence[UpdateReport], *, ax: Any = None) -> Any:
    """Draw the number of inducing points of each latent function, or of rows, after each update.

    Args:
        reports: What `update` or `update_many` returned, in order.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If there are no reports.
        ImportError: If matplotlib is missing.
    """
    _check(reports)
    ax = style.axes(ax)
    steps = [report.update for report in reports]
    sizes = np.array([report.inducing_after for report in reports])
    # Equal lines would hide each other, so they are drawn as one.
    same: dict[tuple[int, ...], list[str]] = {}
    for q, size in enumerate(sizes.T):
        same.setdefault(tuple(size), []).append(str(q))
    for (size, latents), look in zip(same.items(), style.line_styles(len(same)), strict=True):
        name = f"latent{'s' * (len(latents) > 1)} {', '.join(latents)}"
        ax.step(steps, size, where="post", marker=".", label=name, **look)
    ax.set_ylim(0, 1.1 * sizes.max())
    what = "kept rows" if reports[-1].kept_rows else "inducing points"
    _finish(ax, "update", what, len(same) > 1)
    return ax


def hyperparameters(
    reports: Sequence[UpdateReport], which: str | None = None, *, ax: Any = None
) -> Any:
    """Draw the hyperparameters after each update. If all are positive, the scale is logarithmic.

    Args:
        reports: What `update` or `update_many` returned, in order.
        which: A part of the names of those to show, such as "noise", "latent 0" or "weights". By
            default all that are positive and change are shown, except weights.
        ax: Matplotlib axes; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        DataError: If there are no reports, or no name contains `which`.
        ImportError: If matplotlib is missing.
    """
    _check(reports)
    series = _series(reports)
    chosen = {n: v for n, v in series.items() if which is None or which in n}
    if not chosen:
        raise DataError(
            problem(f"a part of one of {sorted(series)}", repr(which), "Check the name.")
        )
    if which is None:
        positive = {n: v for n, v in chosen.items() if np.nanmin(v) > 0 and "weights" not in n}
        moving = {n: v for n, v in positive.items() if np.nanmax(v) > (1 + 1e-9) * np.nanmin(v)}
        chosen = moving or positive or chosen
    ax = style.axes(ax)
    steps = [report.update for report in reports]
    for (name, values), look in zip(chosen.items(), style.line_styles(len(chosen)), strict=True):
        ax.plot(steps, values, marker=".", label=name, **look)
    if all(np.nanmin(values) > 0 for values in chosen.values()):
        _log_scale(ax)
    _finish(ax, "update", "hyperparameter", many=True)
    return ax


def history(reports: Sequence[UpdateReport], *, ax: Any = None) -> np.ndarray:
    """Draw `scores`, `inducing` and `hyperparameters` below each other.

    Args:
        reports: What `update` or `update_many` returned, in order.
        ax: Three Matplotlib axes; by default those of a new figure.

    Returns:
        An array of the three axes.

    Raises:
        DataError: If there are no reports, or not three axes.
        ImportError: If matplotlib is missing.
    """
    _check(reports)
    if ax is None:
        _, ax = style.pyplot().subplots(
            3, 1, figsize=(8, 7.5), sharex=True, layout="constrained", height_ratios=(2, 1, 2)
        )
    axes = np.ravel(np.asarray(ax, object))
    if len(axes) != 3:
        raise DataError(
            problem("three axes to draw on", f"{len(axes)}", "Leave `ax` out for a new figure.")
        )
    scores(reports, ax=axes[0])
    inducing(reports, ax=axes[1])
    hyperparameters(reports, ax=axes[2])
    for each in axes:
        each.label_outer()
    return axes


def _check(reports: Sequence[UpdateReport]) -> None:
    if isinstance(reports, UpdateReport) or not len(reports):
        raise DataError(
            problem("a list of reports", _kind(reports), "Collect what each `update` returns.")
        )


def _kind(reports: Any) -> str:
    return "one report" if isinstance(reports, UpdateReport) else "an empty list"


def _running(ax: Any, values: np.ndarray, name: str, look: Mapping[str, Any]) -> None:
    at = np.arange(1, len(values) + 1)
    ax.plot(at, values, ".", color=look["color"], markersize=4, alpha=0.4, markeredgewidth=0)
    window = max(1, len(values) // 20)
    means = np.convolve(values, np.full(window, 1 / window), mode="valid")
    ax.plot(at[window - 1 :], means, label=name, **look)


def _series(reports: Sequence[UpdateReport]) -> dict[str, np.ndarray]:
    """Every number after each update, by name. It is NaN until its channel exists."""
    rows = [dict(_numbers(report.hyperparameters)) for report in reports]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def _numbers(hyperparameters: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for q, kernel in enumerate(hyperparameters["latents"]):
        yield from _flat(f"latent {q}", kernel)
    for name, channel in hyperparameters["channels"].items():
        yield from _flat(name, channel)


def _flat(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):  # the kind of the kernel or the likelihood
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(name if _are_kernels(part) else f"{name} {key}", part)
        return
    if _are_kernels(value):
        kinds = [part["kind"] for part in value]
        for number, (kind, part) in enumerate(zip(kinds, value, strict=True), start=1):
            again = f" ({kinds[:number].count(kind)})" if kinds.count(kind) > 1 else ""
            yield from _flat(f"{name} {kind}{again}", part)
        return
    entries = np.asarray(value, float)
    for index, number in np.ndenumerate(entries):
        yield name + (str(list(index)) if entries.ndim else ""), float(number)


def _are_kernels(value: Any) -> bool:
    """Whether it is a list of those of a sum or a product."""
    return isinstance(value, list) and all(isinstance(part, Mapping) for part in value)


def _log_scale(ax: Any) -> None:
    """Use a logarithmic scale with plain numbers at its ticks, between powers of ten if few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    between = (1, 2, 3, 5) if high < _MANY * low else (1,)
    ax.yaxis.set_major_locator(LogLocator(subs=between))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def _finish(ax: Any, x: str, y: str, many: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    style.label(ax, x, y)
    if many:
        style.legend_beside(ax)
