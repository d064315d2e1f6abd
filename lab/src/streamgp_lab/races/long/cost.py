"""What the chain costs as it grows: CPU time of each kind of work, memory and file."""

import copy
import gc
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import streamgp as sgp
from streamgp_lab.races.contenders import kalman
from streamgp_lab.races.growth import slope
from streamgp_lab.races.long.streams import CHAIN, TRUTH, Stream, known_model, stream, timed
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.figures import grid
from streamgp_lab.reporting.report import Part, Picture
from streamgp_lab.reporting.tables import Table, number

_BATCH, _SAMPLES, _ASKED = 100, 2048, 1000
_REPEATS, _MOST, _ENOUGH = 5, 40, 0.5  # repeats at least and at most, and seconds that suffice
_BEFORE, _IN_A_ROW = 500, 32  # single samples that are not timed, and those that are
_ROWS_PER_TIME = 1.36  # ten random rows to a lengthscale, with the placement as it is
_OLD = 5.0  # the length of an old stretch, in lengthscales
_PAUSE = 0.1  # between samples at the frontier, in lengthscales
_HUNDRED, _ONE = "100 rows at the frontier", "one sample at the frontier"
_LATE = "100 rows that come late, by 1 to 2% of the stream"
_STRETCH, _SCATTERED = "predicting 1,000 old points in a row", "predicting 1,000 scattered points"
_LOADED, _FIRST = "loading from bytes", "the first question after loading (a full pass)"
_MANY, _FILTER = "one sample of `update_many`", "one sample of the Kalman filter in NumPy"
_FLAT = {_HUNDRED, _ONE, _MANY, _STRETCH}
_FLATTEST, _LINEAR = 0.1, 1.1  # the largest exponents of what must be flat, and of passes


@dataclass(frozen=True)
class Work:
    """CPU seconds of one kind of work, for several numbers of kept rows."""

    name: str
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def exponent(self) -> float:
        """The slope of log CPU time against log M."""
        return slope(self.sizes, self.seconds, 0)


class Held(NamedTuple):
    """Bytes per kept row, of one channel."""

    size: int
    kept: float  # as it is loaded
    asked: float  # with all that is remembered once it has been asked
    file: float


def measure(wanted: Sequence[int]) -> tuple[list[Work], list[Held]]:
    """Every kind of work, and the memory, on chains of about so many kept rows."""
    found: dict[str, Work] = {}
    held = []
    for count in wanted:
        data = stream(_ROWS_PER_TIME * count / 10)
        model = _grown(data)
        size = len(model.inducing_points[0])
        for name, seconds in _works(model, data).items():
            work = found.setdefault(name, Work(name))
            work.sizes.append(size)
            work.seconds.append(seconds)
        held.append(_held(model, size))
    return list(found.values()), held


def _grown(data: Stream) -> sgp.ContinualGP:
    model = known_model(CHAIN)
    for rows in np.array_split(np.arange(len(data.x)), max(len(data.x) // 2000, 2)):
        model.update(data.x[rows], data.y[rows])
    return model


def _works(model: sgp.ContinualGP, data: Stream) -> dict[str, float]:
    """CPU seconds of each kind of work on this model, which stays as it is."""
    end = float(data.x[-1])
    model.predict([end])  # what follows from the state is now remembered
    ahead = end + _PAUSE * np.arange(1, _SAMPLES + 1)
    y = TRUTH.noise * np.random.default_rng(1).normal(size=_SAMPLES)
    back = np.sort(np.random.default_rng(3).uniform(0.98 * end, 0.99 * end, _BATCH))
    in_a_row = end / 4 + np.linspace(0, _OLD, _ASKED)
    scattered = np.random.default_rng(2).uniform(0, end, _ASKED)
    saved = model.to_bytes()
    return {
        _HUNDRED: _least(lambda twin: twin.update(ahead[:_BATCH], y[:_BATCH]), model),
        _ONE: _single(model, ahead, y),
        _LATE: _least(lambda twin: twin.update(back, y[:_BATCH]), model),
        _STRETCH: _least(lambda twin: twin.predict(in_a_row), model),
        _SCATTERED: _least(lambda twin: twin.predict(scattered), model),
        _LOADED: _least(lambda _: sgp.from_bytes(saved), None),
        _FIRST: _least_of(lambda: sgp.from_bytes(saved), lambda loaded: loaded.predict([end / 2])),
        **_streams(model, data, ahead, y),
    }


def _single(model: sgp.ContinualGP, ahead: np.ndarray, y: np.ndarray) -> float:
    """Seconds of a sample by `update`: the least time of each of some in a row, their mean.

    An update also makes forecasts to check later, at first every time and then ever more rarely.
    So the model is used to single samples, and what only some of them do is counted.
    """
    warm = copy.copy(model)
    rows = [slice(row, row + 1) for row in range(_BEFORE + _IN_A_ROW)]
    for row in rows[:_BEFORE]:
        warm.update(ahead[row], y[row])
    seconds = np.full((_MOST, _IN_A_ROW), np.inf)
    for repeat in seconds:
        twin = copy.copy(warm)
        for place, row in enumerate(rows[_BEFORE:]):
            repeat[place] = timed(lambda twin=twin, row=row: twin.update(ahead[row], y[row]))[0]
    return float(np.mean(seconds.min(axis=0)))


def _streams(
    model: sgp.ContinualGP, data: Stream, ahead: np.ndarray, y: np.ndarray
) -> dict[str, float]:
    """Seconds per sample: ours and the filter's, in turns."""
    rival = kalman.Contender()
    rival.learn(data.x[-50:, None], data.y[-50:], None)
    ours, theirs = [], []
    for _ in range(_MOST):
        twin, other = copy.copy(model), copy.copy(rival)
        ours.append(timed(lambda twin=twin: twin.update_many(ahead, y))[0] / len(y))
        own = timed(lambda other=other: other.stream(ahead[:, None], y, None))[0]
        theirs.append(own / len(y))
    return {_MANY: min(ours), _FILTER: min(theirs)}


def _least(work: Callable[[Any], Any], model: sgp.ContinualGP | None) -> float:
    """The least of several times, each on a copy that shares what is remembered."""
    return _least_of(lambda: copy.copy(model), work)


def _least_of(make: Callable[[], Any], work: Callable[[Any], Any]) -> float:
    """Short work is repeated more often: what else the machine does only adds to it."""
    seconds: list[float] = []
    while len(seconds) < _REPEATS or (len(seconds) < _MOST and sum(seconds) < _ENOUGH):
        made = make()
        seconds.append(timed(lambda made=made: work(made))[0])
    return min(seconds)


def _held(model: sgp.ContinualGP, size: int) -> Held:
    saved, middle = model.to_bytes(), float(np.median(model.inducing_points[0]))
    gc.collect()
    tracemalloc.start()
    try:
        loaded = sgp.from_bytes(saved)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        loaded.predict([middle])
        gc.collect()
        asked = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return Held(size, kept / size, asked / size, len(saved) / size)


def parts(works: Sequence[Work], held: Sequence[Held]) -> list[Part]:
    """Tables of time and memory, claims and a picture."""
    sizes = works[0].sizes
    heading = ["CPU ms", *(f"M = {size:,}" for size in sizes), "exponent in M"]
    rows = [
        [work.name, *(number(1e3 * s) for s in work.seconds), f"{work.exponent:.2f}"]
        for work in works
    ]
    by_name = {work.name: work for work in works}
    ours, theirs = by_name[_MANY].seconds, by_name[_FILTER].seconds
    ratios = [number(b / a) + "×" for a, b in zip(ours, theirs, strict=True)]
    rows.append(["`update_many`, times as fast as the filter", *ratios, ""])
    memory = Table(
        "Bytes per kept row, one channel, Matérn-3/2",
        ["M", "in memory, loaded", "in memory, once asked", "in a file"],
        [[f"{h.size:,}", *(number(value) for value in h[1:])] for h in held],
    )
    return [
        Table("The cost of a chain of M kept rows", heading, rows),
        claims(works),
        Picture("the cost of a chain", _draw(works)),
        memory,
    ]


def claims(works: Sequence[Work]) -> list[Claim]:
    """What must not grow with M, and what may grow in proportion to it."""
    said = []
    for work in works:
        if work.name == _FILTER:
            continue
        most = _FLATTEST if work.name in _FLAT else _LINEAR
        sentence = f"{work.name}: the exponent of CPU time in M is at most {most:g}"
        said.append(Claim(sentence, f"{work.exponent:.2f}", work.exponent <= most))
    return said


def _draw(works: Sequence[Work]) -> Any:
    """All curves in one panel, with logarithmic axes."""
    figure, ((ax,),) = grid(1, 1, 7.5, 5)
    for work in works:
        ax.plot(work.sizes, work.seconds, "o-", label=f"{work.name}: {work.exponent:.2f}")
    ax.set(xscale="log", yscale="log", xlabel="kept rows M", ylabel="CPU seconds")
    figure.legend(loc="outside lower center", ncols=1, fontsize=8)
    return figure
