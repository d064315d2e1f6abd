"""Stream random data into models of every likelihood, and look for failures.

There are models with one channel of each likelihood, and models with random mixtures of two to four
channels. Each model lives for 20 to 120 updates with data from a world of its own. The data have
strange units, constant values with a jump, outliers, repeated inputs and inputs far away. The
models keep few rows, or none but values at few inducing points, by all placement strategies. There
are forgetting, single samples, refinements and channels that are added later. The state must stay
finite, and precisions and predictive variances must not be negative.

Every life can be repeated alone. A failure is shown with the command that repeats it, and the
other lives continue.
"""

import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import streamgp as sgp
from streamgp.inference.sparse.state import State
from streamgp_lab.checks import command
from streamgp_lab.checks.worlds import FAMILIES, Batch, World
from streamgp_lab.progress import Bar, bar

BUDGET, KEPT = 20, 40  # inducing points, or rows, so few that updates have to give up some
MIXTURES = 6
ROUNDING = 1e-6  # how far below zero rounding may take an eigenvalue, relatively


class Kind(NamedTuple):
    """What a model consists of, and how large its batches are."""

    names: tuple[str, ...]
    latents: int | None = None
    width: int = 1
    largest: int = 8  # rows in a batch


class Failure(NamedTuple):
    """A life that ended with an error."""

    kind: int
    life: int
    step: int
    batch: Batch
    error: str


def kinds(seed: int, names: Sequence[str], mixtures: int) -> list[Kind]:
    """Each likelihood alone, then mixtures."""
    generator = np.random.default_rng(seed)
    several = []
    for index in range(mixtures):
        size = min(int(generator.integers(2, 5)), len(names))
        own = tuple(map(str, generator.permutation(names)[:size]))
        several.append(
            Kind(
                own,
                latents=1 + index % 3,
                width=2 if index == 1 else 1,
                largest=100 if index == 0 else 8,
            )
        )
    alone = [Kind((name,), largest=100 if i % 3 == 1 else 8) for i, name in enumerate(names)]
    return alone + several


def live(kind: Kind, where: tuple[int, ...], failed: Callable[[int, Batch], None]) -> Iterator[int]:
    """The life of one model, update by update. `failed` is called if a step fails."""
    generator = np.random.default_rng(where)
    world, names = World.drawn(generator, kind.width), list(kind.names)
    later = names.pop() if len(names) > 1 and generator.uniform() < 0.3 else None
    model = sgp.ContinualGP(
        {name: FAMILIES[name] for name in names},
        latents=kind.latents,
        **_past(world, generator),
        forgetting=float(generator.choice([1.0, 1.0, 0.95])),
        seed=int(generator.integers(100)),
    )
    steps = int(generator.integers(20, 120))
    for step in range(steps):
        if later is not None and step == steps // 2:
            model.add_channel(later, FAMILIES[later])
            names.append(later)
        batch = world.batch(names, step, kind.largest, generator)
        try:
            _update(model, batch, generator)
            _check(model)
            if step % 10 == 0 or step == steps - 1:
                _check_predictions(model, world, generator, intervals=step == steps - 1)
        except Exception:
            failed(step, batch)
            yield step
            return
        yield step


def _past(world: World, generator: np.random.Generator) -> dict[str, Any]:
    """How a model keeps the past: as rows in half of the lives, otherwise at inducing points."""
    corner = np.full((1, world.width), world.origin)
    points = {
        0: sgp.KMeans(9),
        1: _growing,
        2: sgp.Fixed(corner + world.unit * generator.uniform(0, 9, (9, world.width))),
    }.get(int(generator.integers(12)), sgp.Adaptive(budget=BUDGET))
    kept = {"keep": KEPT, "engine": str(generator.choice(["auto", "dense"]))}
    return kept if generator.uniform() < 0.5 else {"inducing": points}


_growing = sgp.Growing(lambda update: min(3 + update // 4, 25), layout="random")


def _update(model: sgp.ContinualGP, batch: Batch, generator: np.random.Generator) -> None:
    kind = generator.uniform()
    if kind < 0.1:
        x, y = (np.concatenate(column) for column in zip(*batch.values(), strict=True))
        names = np.concatenate([[name] * len(column[1]) for name, column in batch.items()])
        order = generator.permutation(len(y))
        report = model.update_many(x[order], y[order], names[order])
    else:
        report = model.update(batch)
        assert np.isfinite(report.bound), f"bound {report.bound}"
    if kind > 0.98:
        model.refine()
    for name, scores in report.log_predictive_rows.items():
        assert not np.isnan(scores).any(), f"log predictive of {name}: {scores}"


def _check(model: sgp.ContinualGP) -> None:
    state = model.state
    assert state is not None
    assert state.is_finite(), "not finite"
    if isinstance(state, State):
        values = np.linalg.eigvalsh(state.site.precision)
        assert values[0] >= -ROUNDING * max(values[-1], 1.0), f"precision of {values[0]}"


def _check_predictions(
    model: sgp.ContinualGP, world: World, generator: np.random.Generator, *, intervals: bool
) -> None:
    x = generator.uniform(-5, 20, (8, world.width))
    x[0] = generator.choice([-1e6, 1e6])
    for name in model.channels:
        prediction = model.predict(world.origin + world.unit * x, name)
        assert np.isfinite(prediction.latent_mean).all(), f"latent mean of {name}"
        assert np.isfinite(prediction.latent_variance).all(), f"latent variance of {name}"
        assert np.all(prediction.latent_variance >= 0), f"latent variance of {name}"
        assert not np.isnan(prediction.mean).any(), f"mean of {name}"
        assert np.all(prediction.variance >= 0), f"variance of {name}"  # false for NaN
        if intervals and name != "class":
            low, high = prediction.interval(0.9)
            assert np.all(low <= high), f"interval of {name}"


class Clock:
    """How much of a soak is done, by updates or by seconds, and its progress bar."""

    def __init__(self, updates: int | None, seconds: float | None, line: Bar | None):
        self.total = float((seconds or 0.0) if updates is None else updates)
        self.made, self._begin = 0, time.perf_counter()
        self._by_time, self._line, self._shown = updates is None, line, 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    def tick(self) -> None:
        self.made += 1
        now = int(min(self.seconds, self.total) if self._by_time else self.made)
        if self._line is not None:
            self._line.advance(now - self._shown)
        self._shown = now

    def is_past(self, share: float) -> bool:
        return (self.seconds if self._by_time else self.made) >= share * self.total


def run(
    seed: int,
    *,
    names: Sequence[str] = tuple(FAMILIES),
    mixtures: int = MIXTURES,
    only: tuple[int, int] | None = None,
    updates: int | None = None,
    seconds: float | None = None,
    line: Bar | None = None,
) -> tuple[int, float, list[Failure]]:
    """Run all kinds of lives, and return the number of updates, the seconds and the failures."""
    every = kinds(seed, names, mixtures)
    failures: list[Failure] = []
    clock = Clock(updates, seconds, line)
    for kind, life in _turns(len(every), clock) if only is None else [only]:
        if line is not None:
            line.show(", ".join(every[kind].names))

        def failed(step: int, batch: Batch, at: tuple[int, int] = (kind, life)) -> None:
            failures.append(Failure(*at, step, batch, traceback.format_exc()))
            print(_described(seed, failures[-1], every), file=sys.stderr)

        for _ in live(every[kind], (seed, kind, life), failed):
            clock.tick()
            if only is None and clock.is_past((kind + 1) / len(every)):
                break
    return clock.made, clock.seconds, failures


def _turns(count: int, clock: Clock) -> Iterator[tuple[int, int]]:
    """Pairs (kind, life). Each kind has lives until its share of the soak is done."""
    for kind in range(count):
        for life in itertools.count():
            if clock.is_past((kind + 1) / count):
                break
            yield kind, life


def _described(seed: int, failure: Failure, every: list[Kind]) -> str:
    again = f"streamgp-lab check soak --seed {seed} --only {failure.kind} {failure.life}"
    with np.printoptions(precision=17, threshold=sys.maxsize):
        where = f"{every[failure.kind]}\nstep {failure.step}, batch {failure.batch}"
    return f"{where}\n{failure.error}Repeat it with: {again}\n"


def main(
    updates: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    only: Sequence[int] | None = None,
) -> None:
    """Run the soak and exit with status 1 if there were failures."""
    if updates is None and seconds is None:
        updates = 100_000
    one = None if only is None else (only[0], only[1])
    with bar("soak", None if only else updates or seconds) as line:
        made, elapsed, failures = run(seed, only=one, updates=updates, seconds=seconds, line=line)
    print(f"{made} updates in {elapsed:.0f} s ({made / elapsed:.1f} per second).")
    print(f"{len(failures)} lives failed." if failures else "There were no failures.")
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    command("soak")
