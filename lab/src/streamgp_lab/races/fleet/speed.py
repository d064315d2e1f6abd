"""Keys per second of a fleet beside a loop over separate models, growth with keys, and memory."""

import pickle
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import streamgp as sgp
from streamgp_lab.races.fleet.wards import FIRST, ROWS, Ward, fleet_of, models, timed, ward
from streamgp_lab.reporting.claims import Claim, faster
from streamgp_lab.reporting.report import Part
from streamgp_lab.reporting.tables import Table, number

LOOP, FLEET = "a loop over separate models", "a fleet"
LEARNING_LOOP = "a loop, with learning"
LEARNING_FLEET = "a fleet whose keys each learn their own"
SHARED = "a fleet with shared hyperparameters"
_BATCHES = 2  # of which the faster one counts
_LEARNING_BATCHES = 8
_MEMORY_KEYS = 300
_MEMORY = 40_000.0  # bytes per key that may come on top of its state
_EXPONENT = 1.05


@dataclass(frozen=True)
class Speed:
    """How fast one batch of five rows per key is learned.

    Attributes:
        method: How.
        keys: How many.
        points: The largest number of inducing times of a key.
        seconds: CPU time per key and batch.
        apart: The largest difference to separate models in predictions, where they are the same.
    """

    method: str
    keys: int
    points: int
    seconds: float
    apart: float = np.nan


def without_learning(keys: int, in_loop: int) -> list[Speed]:
    """The same batches for a loop over some of the keys, and for a fleet of all."""
    template, data = sgp.ContinualGP(sgp.Gaussian()), ward(keys, _BATCHES)
    alone = models(data, in_loop, template)
    fleet = fleet_of(models(data, keys, template), template)
    looped = together = np.inf
    for turn in range(1, _BATCHES + 1):
        took, _ = timed(lambda turn=turn: _loop(alone, data, turn, learn=False))
        looped, together = min(looped, took), min(together, _update(fleet, data, turn))
    points = _points(fleet)
    apart = max(_apart(fleet[k], model) for k, model in list(alone.items())[:20])
    return [
        Speed(LOOP, in_loop, points, looped / in_loop),
        Speed(FLEET, keys, points, together / keys, apart),
    ]


def with_learning(keys: int, own_keys: int, in_loop: int) -> list[Speed]:
    """Streams of eight batches whose hyperparameters are learned on schedule.

    Args:
        keys: Of the fleet with shared hyperparameters.
        own_keys: Of the fleet whose keys have their own.
        in_loop: Separate models.
    """
    template, data = sgp.ContinualGP(sgp.Gaussian()), ward(max(keys, own_keys), _LEARNING_BATCHES)
    alone = models(data, in_loop, template)
    fleet = fleet_of(models(data, own_keys, template), template)
    shared = sgp.Fleet(template, shared=True)
    shared.update(data.table(0), key="key", inputs="time")
    looped = own = all_keys = 0.0
    for turn in range(1, _LEARNING_BATCHES + 1):
        table = data.table(turn)
        some = table[table["key"] < own_keys]
        looped += timed(lambda turn=turn: _loop(alone, data, turn, learn=True))[0]
        own += timed(lambda some=some: fleet.update(some, key="key", inputs="time"))[0]
        all_keys += timed(lambda table=table: shared.update(table, key="key", inputs="time"))[0]
    points = _points(fleet)
    apart = max(_apart(fleet[k], model) for k, model in list(alone.items())[:20])
    each = _LEARNING_BATCHES
    return [
        Speed(LEARNING_LOOP, in_loop, points, looped / (each * in_loop)),
        Speed(LEARNING_FLEET, own_keys, points, own / (each * own_keys), apart),
        Speed(SHARED, keys, points, all_keys / (_LEARNING_BATCHES * data.keys)),
    ]


def growth(sizes: Sequence[int]) -> list[Speed]:
    """One batch, of fleets of several sizes. Every key has learned its own first rows."""
    found, template = [], sgp.ContinualGP(sgp.Gaussian())
    for keys in sizes:
        data, fleet = ward(keys, 2, apart=True), sgp.Fleet(template, shared=True)
        fleet.update(data.table(0), key="key", inputs="time")
        seconds = min(_update(fleet, data, turn) for turn in (1, 2))
        found.append(Speed(FLEET, keys, _points(fleet), seconds / keys))
    return found


def memory() -> tuple[float, float]:
    """Bytes of a key's state, and bytes that its model takes beside it, after some updates."""
    template, data = sgp.ContinualGP(sgp.Gaussian()), ward(_MEMORY_KEYS, 2)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    fleet = fleet_of(models(data, _MEMORY_KEYS, template, apart=True), template)
    for turn in (1, 2):
        fleet.update(data.table(turn), key="key", inputs="time", learn=False)
    held = (tracemalloc.get_traced_memory()[0] - before) / _MEMORY_KEYS
    tracemalloc.stop()
    state = float(np.mean([len(pickle.dumps(fleet[k].state)) for k in range(20)]))
    return state, held - state


def _loop(alone: dict, data: Ward, turn: int, *, learn: bool) -> None:
    x, y = data.batches[turn]
    for k, model in alone.items():
        model.update(x[k], y[k], learn=learn)


def _update(fleet: sgp.Fleet, data: Ward, turn: int) -> float:
    """CPU seconds of a batch of all keys."""
    table = data.table(turn)
    return timed(lambda: fleet.update(table, key="key", inputs="time", learn=False))[0]


def _points(fleet: sgp.Fleet) -> int:
    """The largest number of inducing times."""
    return max(len(model.inducing_points[0]) for model in fleet.values())


def _apart(one: sgp.ContinualGP, other: sgp.ContinualGP) -> float:
    x = np.linspace(0, 30, 40)
    a, b = one.predict(x), other.predict(x)
    return float(max(np.max(np.abs(a.mean - b.mean)), np.max(np.abs(a.std - b.std))))


# -- what it says ----------------------------------------------------------------------------------


def exponent(found: Sequence[Speed]) -> float:
    """Of total time in the number of keys."""
    keys = np.log([each.keys for each in found])
    return float(np.polyfit(keys, np.log([each.seconds * each.keys for each in found]), 1)[0])


def parts(fast: Sequence[Speed], learned: Sequence[Speed]) -> list[Part]:
    """Speeds, and what they should be."""
    loop, fleet = fast
    learning_loop, own, shared = learned
    heading = ["", "keys", "largest M", "CPU ms per key and batch", "times a loop", "difference"]
    rows = [_row(each, loop) for each in fast] + [_row(each, learning_loop) for each in learned]
    claims = [
        faster(5, loop.seconds / fleet.seconds, LOOP),
        faster(3, learning_loop.seconds / own.seconds, LEARNING_LOOP),
        faster(3, learning_loop.seconds / shared.seconds, f"{LEARNING_LOOP}, if they are shared"),
        Claim(
            "predictions as those of separate models, to 1e-9", f"{fleet.apart:.1e}",
            bool(fleet.apart <= 1e-9),
        ),
    ]  # fmt: skip
    caption = f"Batches of {ROWS} rows per key, after {FIRST} rows of each"
    return [Table(caption, heading, rows), claims]


def _row(each: Speed, base: Speed) -> list[str]:
    return [
        each.method, f"{each.keys:,}", f"{each.points}", number(1e3 * each.seconds),
        f"{base.seconds / each.seconds:.1f}×",
        "–" if np.isnan(each.apart) else f"{each.apart:.0e}",
    ]  # fmt: skip


def growth_parts(found: Sequence[Speed], held: tuple[float, float]) -> list[Part]:
    """Time by the number of keys, and memory."""
    rows = [[f"{e.keys:,}", number(1e3 * e.seconds), f"{1 / e.seconds:,.0f}"] for e in found]
    power, (state, more) = exponent(found), held
    return [
        Table("Fleets of several sizes", ["keys", "CPU ms per key", "keys per CPU second"], rows),
        f"A state takes {state / 1e3:.1f} KB, a model in a fleet {more / 1e3:.1f} KB more.",
        [
            Claim(
                f"time grows with keys to the power of at most {_EXPONENT}", f"{power:.3f}",
                power <= _EXPONENT,
            ),
            Claim(
                "at most 40 KB per key beyond its state", f"{more / 1e3:.1f} KB", more <= _MEMORY
            ),
        ],
    ]  # fmt: skip
