"""Growth: the cost of our updates as the stream, the points, channels and functions grow."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.batch import Rows
from streamgp_lab.problem import rows as as_rows
from streamgp_lab.progress import Bar
from streamgp_lab.races.benchmark import Benchmark, Settings
from streamgp_lab.races.contender import Answer, Contender, Running
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.figures import grid
from streamgp_lab.reporting.report import Part, Picture, Report
from streamgp_lab.reporting.tables import Table, number

_SPAN = 60.0
_REPEATS = 5
_SEEN = "samples seen"
_LEARNED, _SAMPLES = "M, learning hyperparameters", "M, `update_many`"
_KEPT = 64  # rows that a model keeps while more and more are seen: fewer than are ever seen
_STREAMED = [64, 128, 256]  # numbers of points that samples are streamed with
_CHANNELS = "M, 16 channels of 3 functions"
_CHANNELS_LEARNED = f"{_CHANNELS}, learning hyperparameters"
_LARGEST_EXPONENTS = {_SEEN: 0.05, "M": 3.0}
_LEAST_RATIO = 30.0  # between the top and the bottom of a panel, so that flat curves look flat


@dataclass
class Curve:
    """CPU and wall seconds per update, and peak memory, for several sizes."""

    name: str
    along: str  # what grows
    fitted_from: float  # smaller sizes are mostly overhead and do not count in the exponents
    sizes: list[int] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def add(self, size: int, took: Answer, peak: float) -> None:
        self.sizes.append(size)
        self.cpu.append(float(took["cpu"]))
        self.wall.append(float(took["wall"]))
        self.peak.append(peak)

    @property
    def exponent(self) -> float:
        """The slope of log CPU time against log size."""
        return slope(self.sizes, self.cpu, self.fitted_from)

    @property
    def memory_exponent(self) -> float:
        """The slope of log peak memory against log size."""
        return slope(self.sizes, self.peak, self.fitted_from)


class Comparison(NamedTuple):
    """A curve of ours, and that of another version or method for the same updates."""

    name: str
    ours: Curve
    theirs: Curve

    @property
    def rows(self) -> list[list[str]]:
        """One row per size that both have."""
        ours = dict(zip(self.ours.sizes, self.ours.cpu, strict=True))
        pairs = zip(self.theirs.sizes, self.theirs.cpu, strict=True)
        return [
            [
                self.ours.name, self.name, str(size), number(1e3 * ours[size]),
                number(1e3 * theirs), f"{number(theirs / ours[size])}×",
            ]
            for size, theirs in pairs
            if size in ours
        ]  # fmt: skip


def slope(sizes: Sequence[int], values: Sequence[float], begin: float) -> float:
    """The exponent with which values grow with sizes, of those from a size on."""
    pairs = np.array([(s, v) for s, v in zip(sizes, values, strict=True) if s >= begin])
    return float(np.polyfit(np.log(pairs[:, 0]), np.log(pairs[:, 1]), 1)[0])


def measure(settings: Settings, bar: Bar) -> Iterator[Report]:
    """Measure all curves, each in processes of its own."""
    share = settings.share
    counts = [10**power for power in range(2, 7) if 10**power <= 10**6 * share]
    sizes = [m for m in (16, 32, 64, 128, 256, 512, 1024) if m <= max(1024 * share, 128)]
    several = [c for c in (1, 2, 4, 8, 16) if c <= max(16 * share, 4)]
    few = [(8, q) for q in several if q <= 8]
    todo: dict[str, Callable[[str], Curve]] = {
        "samples seen, `update_many`": lambda name: _samples_seen(name, counts),
        "samples seen, updates of 100": lambda name: _batches_seen(
            name, [count for count in counts if count <= 10**4]
        ),
        _LEARNED: lambda name: _points(name, sizes, learns=True),
        "M, fixed hyperparameters": lambda name: _points(name, sizes, learns=False),
        _SAMPLES: lambda name: _samples(name, _STREAMED),
        "D channels, Q = 2": lambda name: _wide(name, "D", [(d, 2) for d in several]),
        "Q functions, D = 8": lambda name: _wide(name, "Q", few),
    }
    bar.expect(len(todo) + 1 + (settings.against is not None))
    found = []
    for name, curve in todo.items():
        bar.show(name)
        found.append(curve(name))
        bar.advance()
    bar.show("Kalman filter")
    compared = [_filtered(found)]
    bar.advance()
    if settings.against is not None:
        bar.show(str(settings.against))
        compared += _compared(sizes, settings.against)
        bar.advance()
    yield report(found, compared)


def _data(count: int, seed: int) -> Rows:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, _SPAN, count)
    return as_rows(["y"], {"y": (x, np.sin(x) + 0.3 * generator.normal(size=count))})


def _several(channels: int, seed: int, rows: int = 10) -> Rows:
    """So many rows per channel."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, _SPAN, (channels, rows))
    y = np.sin(x + np.arange(channels)[:, None]) + 0.3 * generator.normal(size=x.shape)
    names = [f"channel {index}" for index in range(channels)]
    return as_rows(names, dict(zip(names, zip(x, y, strict=True), strict=True)))


def _start(settings: dict, source: Path | None = None) -> Running:
    return Contender("ours", "ours", settings=settings, source=source).start(Path())


def _median(ask: Callable[[Rows], Answer], batches: Sequence[Rows]) -> Answer:
    answers = [ask(batch) for batch in batches]
    return {key: np.median([np.mean(a[key]) for a in answers]) for key in ("cpu", "wall")}


def _samples_seen(name: str, counts: list[int]) -> Curve:
    """The cost per sample after `counts` samples, with 64 points and fixed hyperparameters."""
    curve, seen = Curve(name, _SEEN, 0), 0
    settings = {"kernel": "matern32", "grid": [0, _SPAN, 64], "every": 0, "many": True}
    with _start(settings) as running:
        running.learn(_data(50, 0))
        running.stream(_data(2048, 1))
        for count in counts:
            if count > seen:
                running.stream(_data(count - seen, count))
            batches = [_data(1024, count + k) for k in range(_REPEATS)]
            curve.add(count, _median(running.stream, batches), running.peak())
            seen = count + 1024 * _REPEATS
    return curve


def _batches_seen(name: str, counts: list[int]) -> Curve:
    """The cost of an update with 100 rows after `counts` rows, once no more rows can be kept."""
    curve, seen = Curve(name, _SEEN, 0), 0
    with _start({"keep": _KEPT}) as running:
        for _ in range(5):
            running.learn(_data(100, seen))
            seen += 100
        for count in counts:
            while seen < count:
                running.learn(_data(100, seen))
                seen += 100
            batches = [_data(100, seen + k) for k in range(_REPEATS)]
            curve.add(max(count, seen), _median(running.learn, batches), running.peak())
            seen += 100 * _REPEATS
    return curve


def _points(name: str, sizes: list[int], *, learns: bool, source: Path | None = None) -> Curve:
    """The cost of an update with a hundred rows, for several numbers of inducing points."""
    curve = Curve(name, "M", 64)
    for size in sizes:
        settings = {"grid": [0, _SPAN, size], "every": int(learns)}
        with _start(settings, source) as running:
            for k in range(2):
                running.learn(_data(100, k))
            batches = [_data(100, 10 + k) for k in range(_REPEATS)]
            curve.add(size, _median(running.learn, batches), running.peak())
    return curve


def _samples(name: str, sizes: list[int], source: Path | None = None) -> Curve:
    """The cost per sample of `update_many`, for several numbers of inducing points."""
    curve = Curve(name, "M", 64)
    for size in sizes:
        settings = {"kernel": "matern32", "grid": [0, _SPAN, size], "every": 0, "many": True}
        with _start(settings, source) as running:
            curve.add(size, _streamed(running), running.peak())
    return curve


def _streamed(running: Running) -> Answer:
    """The time per sample, after a first batch and some samples that do not count."""
    running.learn(_in_order(50, 0))
    running.stream(_in_order(512, 1))
    return _median(running.stream, [_in_order(512, 2 + k) for k in range(_REPEATS)])


def _in_order(count: int, turn: int) -> Rows:
    """Samples in the order of their inputs, which a filter over time needs."""
    generator = np.random.default_rng(turn)
    x = _SPAN * (turn + np.linspace(0, 1, count, endpoint=False)) / (_REPEATS + 2)
    return as_rows(["y"], {"y": (x, np.sin(x) + 0.3 * generator.normal(size=count))})


def _compared(sizes: list[int], source: Path) -> list[Comparison]:
    """The same updates with this version and another, in turns."""
    ways: dict[str, tuple[list[int], Callable[[str, list[int], Path | None], Curve]]] = {
        _LEARNED: (
            [size for size in sizes if 32 <= size <= 512],
            lambda name, size, where: _points(name, size, learns=True, source=where),
        ),
        _SAMPLES: (_STREAMED, _samples),
        _CHANNELS: (
            [size for size in (64, 256) if size <= max(sizes)],
            lambda name, size, where: _channels(name, size, learns=False, source=where),
        ),
        _CHANNELS_LEARNED: (
            [size for size in (64, 256) if size <= max(sizes)],
            lambda name, size, where: _channels(name, size, learns=True, source=where),
        ),
    }
    found = []
    for name, (chosen, measured) in ways.items():
        pairs = [[measured(name, [size], where) for where in (None, source)] for size in chosen]
        found.append(Comparison(str(source), *map(_joined, zip(*pairs, strict=True))))
    return found


def _channels(name: str, sizes: list[int], *, learns: bool, source: Path | None = None) -> Curve:
    """The cost of an update with 128 rows of 16 channels, for several numbers of points."""
    curve = Curve(name, "M", 64)
    for size in sizes:
        settings = {"channels": 16, "latents": 3, "grid": [0, _SPAN, size], "every": int(learns)}
        with _start(settings, source) as running:
            for k in range(2):
                running.learn(_several(16, k, rows=8))
            batches = [_several(16, 10 + k, rows=8) for k in range(_REPEATS)]
            curve.add(size, _median(running.learn, batches), running.peak())
    return curve


def _joined(curves: Sequence[Curve]) -> Curve:
    """Curves of one size each, as one."""
    first = curves[0]
    parts = zip(*((c.sizes, c.cpu, c.wall, c.peak) for c in curves), strict=True)
    numbers = (list(itertools.chain(*part)) for part in parts)
    return Curve(first.name, first.along, first.fitted_from, *numbers)


def _filtered(ours: Sequence[Curve]) -> Comparison:
    """A Kalman filter in NumPy, whose cost does not depend on M."""
    (curve,) = (curve for curve in ours if curve.name == _SAMPLES)
    with Contender("Kalman filter, NumPy", "kalman").start(Path()) as running:
        took, peak = _streamed(running), running.peak()
    filtered = Curve(curve.name, curve.along, curve.fitted_from)
    for size in curve.sizes:
        filtered.add(size, took, peak)
    return Comparison("Kalman filter, NumPy", curve, filtered)


def _wide(name: str, along: str, pairs: list[tuple[int, int]]) -> Curve:
    """The cost of an update with ten rows per channel and 32 points per function."""
    curve = Curve(name, along, 2)
    for channels, latents in pairs:
        settings = {"channels": channels, "latents": latents, "grid": [0, _SPAN, 32], "every": 1}
        with _start(settings) as running:
            for k in range(3):
                running.learn(_several(channels, k))
            batches = [_several(channels, 10 + k) for k in range(_REPEATS)]
            size = channels if along == "D" else latents
            curve.add(size, _median(running.learn, batches), running.peak())
    return curve


def report(curves: Sequence[Curve], compared: Sequence[Comparison] = ()) -> Report:
    """Exponents, claims, a picture and all measurements."""
    exponents = Table(
        "Fitted exponents",
        ["what grows", "CPU time", "memory"],
        [[c.name, f"{c.exponent:.2f}", f"{c.memory_exponent:.2f}"] for c in curves],
    )
    rows = [
        [curve.name, str(size), number(1e3 * cpu), number(1e3 * wall), f"{peak:.0f}"]
        for curve in curves
        for size, cpu, wall, peak in zip(
            curve.sizes, curve.cpu, curve.wall, curve.peak, strict=True
        )
    ]
    heading = ["what grows", "size", "CPU ms", "wall ms", "peak MB"]
    table = Table("One update of streamgp", heading, rows)
    parts: list[Part] = [exponents, claims(curves), Picture("growth", _draw(curves)), table]
    if compared:
        beside = ["what grows", "beside", "size", "streamgp, CPU ms", "theirs, CPU ms", "ratio"]
        rows = [row for each in compared for row in each.rows]
        parts.append(Table("Beside others", beside, rows))
    measured = {
        "measured": [asdict(curve) for curve in curves],
        "compared": [
            {"beside": each.name, "ours": asdict(each.ours), "theirs": asdict(each.theirs)}
            for each in compared
        ],
    }
    return Report("growth", BENCHMARK.about, "", parts, measured)


def claims(curves: Sequence[Curve]) -> list[Claim]:
    said = []
    for curve in curves:
        most = _LARGEST_EXPONENTS.get(curve.along)
        if most is None:
            continue
        sentence = f"{curve.name}: the exponent of CPU time is below {most}"
        said.append(Claim(sentence, f"{curve.exponent:.3f}", curve.exponent < most))
        if curve.along == _SEEN:
            sentence = f"{curve.name}: the exponent of memory is below {most}"
            exponent = curve.memory_exponent
            said.append(Claim(sentence, f"{exponent:.3f}", exponent < most))
    return said


def _draw(curves: Sequence[Curve]) -> Any:
    """One panel per curve, with logarithmic axes."""
    columns = 3
    figure, axes = grid(-(-len(curves) // columns), columns, 4, 3)
    for ax, curve in zip(axes.flat, curves, strict=False):
        ax.plot(curve.sizes, curve.cpu, "o-", label="CPU")
        ax.plot(curve.sizes, curve.wall, "s--", markersize=4, label="wall")
        ax.set(xscale="log", yscale="log", xlabel=curve.along, ylabel="seconds per update")
        ax.set_title(f"{curve.name}: exponent {curve.exponent:.2f}", fontsize=9)
        ax.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes], fontsize=7)
        ax.minorticks_off()
        low, high = min(*curve.cpu, *curve.wall), max(*curve.cpu, *curve.wall)
        widen = max(1.2, (_LEAST_RATIO / (high / low)) ** 0.5)
        ax.set_ylim(low / widen, high * widen)
    for ax in axes.flat[len(curves) :]:
        ax.set_axis_off()
    axes[0, 0].legend(fontsize=8)
    return figure


BENCHMARK = Benchmark(
    "growth",
    "The cost of an update of streamgp as the stream, M, D and Q grow, with fitted exponents.",
    measure,
)
