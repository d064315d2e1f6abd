"""Does anything ever break? Random streams of every likelihood, for as long as you like.

    python -m streamgp_lab.checks.soak --updates 100000          (or --seconds 600)

Every family alone, and random mixtures of two to four channels. A model lives for some tens of
updates of a world of its own: odd units, constant values and then a jump, outliers, repeats, inputs
far away; a small budget, other placements, forgetting, samples one by one, refinements, a channel
that joins later. All of the state must stay finite, sites and predictive variances not negative.

Lives are reproducible one by one. One that fails is told with the command that repeats it; the
others go on.
"""

import argparse
import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

import streamgp as sgp
from streamgp.inducing import Strategy
from streamgp.inference.carry import Carry, Marginals, Projection
from streamgp.numerics.compiling import use_compilation_cache
from streamgp.online.progress_bar import progress_bar
from streamgp_lab.checks.wild import FAMILIES, Batch, World

BUDGET = 20  # with half as many again while a batch is learned: one padded size
MIXTURES = 6
ROUNDING = 1e-6  # relative: how far below zero an eigenvalue may come by arithmetic


class Kind(NamedTuple):
    """What decides which programs are compiled."""

    names: tuple[str, ...]
    latents: int | None = None
    width: int = 1
    factorised: bool = False
    carry: Carry = Projection()
    largest: int = 8  # rows in a batch; more than 8 is another padded size


class Failure(NamedTuple):
    """Where a life ended too early."""

    kind: int
    life: int
    step: int
    batch: Batch
    error: str


def kinds(seed: int, names: Sequence[str], mixtures: int) -> list[Kind]:
    """Each family alone, then mixtures of some."""
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
                factorised=index == 4,
                carry=Marginals() if index == 2 else Projection(),
                largest=100 if index == 0 else 8,
            )
        )
    alone = [Kind((name,), largest=100 if i % 3 == 1 else 8) for i, name in enumerate(names)]
    return alone + several


def live(kind: Kind, where: tuple[int, ...], failed: Callable[[int, Batch], None]) -> Iterator[int]:
    """One model's life, update by update. `failed` is told of a step that broke."""
    generator = np.random.default_rng(where)
    world, names = World.drawn(generator, kind.width), list(kind.names)
    later = names.pop() if len(names) > 1 and generator.uniform() < 0.3 else None
    model = sgp.ContinualGP(
        {name: FAMILIES[name] for name in names},
        latents=kind.latents,
        inducing=_placement(world, generator),
        forgetting=float(generator.choice([1.0, 1.0, 0.95])),
        factorised=kind.factorised,
        carry=kind.carry,
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


def _placement(world: World, generator: np.random.Generator) -> Strategy:
    corner = np.full((1, world.width), world.origin)
    return {
        0: sgp.KMeans(9),
        1: _growing,
        2: sgp.Fixed(corner + world.unit * generator.uniform(0, 9, (9, world.width))),
    }.get(int(generator.integers(12)), sgp.Adaptive(budget=BUDGET))


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
    assert model.state is not None
    for path, leaf in jax.tree_util.tree_leaves_with_path(model.state):
        assert np.isfinite(leaf).all(), jax.tree_util.keystr(path)
    for what in (*model.state.site.precision, model.state.memory.precision):
        values = np.linalg.eigvalsh(np.asarray(what)) if what.size else np.zeros(1)
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
    """How much of a soak is done, by updates or by seconds, with a bar beside it."""

    def __init__(self, updates: int | None, seconds: float | None, advance: Callable[[int], None]):
        self.total = seconds if updates is None else updates
        self.made, self._begin = 0, time.perf_counter()
        self._by_time, self._advance, self._shown = updates is None, advance, 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    def tick(self) -> None:
        self.made += 1
        now = int(self.seconds if self._by_time else self.made)
        self._advance(now - self._shown)
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
    shown: bool = False,
) -> tuple[int, float, list[Failure]]:
    """Lives of one kind after the other: updates made, seconds it took, and failures."""
    every = kinds(seed, names, mixtures)
    failures: list[Failure] = []
    with progress_bar(int(updates or seconds or 0), "soak", shown=shown) as advance:
        clock = Clock(updates, seconds, advance)
        for kind, life in _turns(len(every), clock) if only is None else [only]:

            def failed(step: int, batch: Batch, at: tuple[int, int] = (kind, life)) -> None:
                failures.append(Failure(*at, step, batch, traceback.format_exc()))
                print(_told(seed, failures[-1], every), file=sys.stderr)

            for _ in live(every[kind], (seed, kind, life), failed):
                clock.tick()
                if only is None and clock.is_past((kind + 1) / len(every)):
                    break
    return clock.made, clock.seconds, failures


def _turns(count: int, clock: Clock) -> Iterator[tuple[int, int]]:
    """(kind, life): each kind has lives until its share of the soak is done."""
    for kind in range(count):
        for life in itertools.count():
            if clock.is_past((kind + 1) / count):
                break
            yield kind, life
        jax.clear_caches()  # a kind's programs take some hundred megabytes


def _told(seed: int, failure: Failure, every: list[Kind]) -> str:
    again = f"python -m streamgp_lab.checks.soak --seed {seed} --only {failure.kind} {failure.life}"
    with np.printoptions(precision=17, threshold=sys.maxsize):
        where = f"{every[failure.kind]}\nstep {failure.step}, batch {failure.batch}"
    return f"{where}\n{failure.error}repeat: {again}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, help="100,000 unless --seconds is given")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs=2, metavar=("KIND", "LIFE"), help="repeat one")
    options = parser.parse_args()
    updates = 100_000 if options.seconds is None and options.updates is None else options.updates
    use_compilation_cache()
    made, elapsed, failures = run(
        options.seed,
        only=None if options.only is None else tuple(options.only),
        updates=updates,
        seconds=options.seconds,
        shown=True,
    )
    print(f"{made} updates in {elapsed:.0f} s ({made / elapsed:.1f} a second)")
    print(f"{len(failures)} lives failed" if failures else "nothing broke")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
