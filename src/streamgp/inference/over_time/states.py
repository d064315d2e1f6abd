"""Latent functions of time as the states of the compiled core, and the way back to derivatives.

The core knows blocks of moving numbers, static numbers, and what each row sees of them (`core/`).
Here kernels are put in its terms. A constant is a static number, and so is a line, seen through
the time, and each weight of a mean function. A cosine is two static numbers in the frame that turns
with it, seen through cos ωt and sin ωt: cos ω(t − t′) = cos ωt cos ωt′ + sin ωt sin ωt′. In the
same way a process times a cosine is two processes. Amplitudes are in the readouts, so that
derivatives by variances are derivatives by readouts. A process that the core does not know is
handed over as matrices over each distinct gap.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp import _core
from streamgp.inference.over_time.law import Law, distinct_gaps, scale_of
from streamgp.kernels.state_space import (
    ConstantState,
    HarmonicState,
    LineState,
    MaternState,
    ProductState,
    StateSpace,
)

_GIVEN = 3  # the core's kind of a block whose moves are handed over; Matérns have their order
_DIFFERENCE = 1e-5  # in log units
_HALF = 2.0**27 + 1  # it splits a number into two of half the digits
_NOTHING = np.zeros(0)

Times = Float[np.ndarray, " n"]
Numbers = Float[np.ndarray, " s"]  # of the core, as one array


class Rows(NamedTuple):
    """Scalar observations in the order of time: value = f(time) + N(0, noise).

    Attributes:
        time: When.
        value: What was observed, less the offset; NaN where f is only asked for.
        noise: The variance of the noise.
        output: The latent parameter that is f.
        basis: The mean functions at each row.
        mix: Where f is a sum of latent parameters, the weight of each; `output` then says nothing.
    """

    time: Times
    value: Times
    noise: Times
    output: Int[np.ndarray, " n"]
    basis: Float[np.ndarray, "n B"]
    mix: Float[np.ndarray, "n O"] | None = None

    def take(self, which: slice | np.ndarray) -> "Rows":
        """Some of them."""
        mix = None if self.mix is None else self.mix[which]
        time, value, noise = self.time[which], self.value[which], self.noise[which]
        return Rows(time, value, noise, self.output[which], self.basis[which], mix)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts, one after the other."""
    mixes = [part.mix for part in parts if part.mix is not None]
    return Rows(
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.noise for part in parts]),
        np.concatenate([part.output for part in parts]),
        np.concatenate([part.basis for part in parts]),
        np.concatenate(mixes) if mixes else None,
    )


class Evidence(NamedTuple):
    """log p(rows) and its derivatives.

    Attributes:
        value: The log evidence.
        by_numbers: By the logarithm of each number of each state, as `Law.numbers` lists them.
        by_loadings: By the loading of each latent parameter on each latent function.
        by_noise: By the noise variance of each row.
    """

    value: float
    by_numbers: Float[np.ndarray, " k"]
    by_loadings: Float[np.ndarray, "O Q"]
    by_noise: Times


class Around(NamedTuple):
    """What is known of rows before and after some rows, as the core tells it; None if none are.

    Attributes:
        before: The filter after the rows before.
        after: What rows after say; it begins with when, and the number of the gap that leads there.
    """

    before: Numbers | None = None
    after: Numbers | None = None


ALONE = Around()


class StatesAt(NamedTuple):
    """Mean and covariance of all numbers of the states at some times.

    Attributes:
        mean: First those of latent functions; last, the whitened weights of mean functions.
        covariance: Of the same numbers.
    """

    mean: Float[np.ndarray, "m d"]
    covariance: Float[np.ndarray, "m d d"]


def _turned(frequency: float, time: Times) -> Float[np.ndarray, "n 2"]:
    """cos ωt and sin ωt, right to all digits after however many turns."""
    turn = frequency * time
    rest = _rounding_of(frequency, time, turn)
    cosine, sine = np.cos(turn), np.sin(turn)
    return np.column_stack([cosine - rest * sine, sine + rest * cosine])


def _rounding_of(
    a: float, b: Float[np.ndarray, " n"], product: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """What a·b is more than its rounded product (Dekker, 1971)."""

    def halves(x: Any) -> tuple[Any, Any]:
        upper = _HALF * x - (_HALF * x - x)
        return upper, x - upper

    (a_upper, a_lower), (b_upper, b_lower) = halves(a), halves(b)
    rest = a_upper * b_upper - product
    return rest + a_upper * b_lower + a_lower * b_upper + a_lower * b_lower


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """One process of a kernel as blocks of the core: a block for each way in which it is seen.

    Attributes:
        latent: The latent function that it belongs to.
        factors: The processes that it is the product of.
    """

    latent: int
    factors: tuple[StateSpace, ...]

    @functools.cached_property
    def process(self) -> StateSpace | None:
        """What moves; None if nothing does."""
        still = ConstantState | HarmonicState | LineState
        moving = [factor for factor in self.factors if not isinstance(factor, still)]
        return functools.reduce(ProductState, moving) if moving else None

    @property
    def kind(self) -> int:
        """The core's kind of its blocks."""
        return self.process.order if isinstance(self.process, MaternState) else _GIVEN

    @property
    def is_given(self) -> bool:
        """Whether the core does not know what moves."""
        return self.process is not None and self.kind == _GIVEN

    @functools.cached_property
    def lines(self) -> int:
        """How many straight lines are among the factors: a block is seen through that power."""
        return sum(isinstance(factor, LineState) for factor in self.factors)

    @functools.cached_property
    def scale(self) -> Float[np.ndarray, " d"]:
        """The units of a process that is handed over: its prior standard deviations."""
        assert self.process is not None
        return scale_of(np.diagonal(self.process.covariance(0.0)))

    @functools.cached_property
    def readout(self) -> Float[np.ndarray, " d"]:
        """Of each block. It has the variances that the core's blocks have not."""
        variance = 1.0
        for factor in self.factors:
            if isinstance(factor, ConstantState | HarmonicState | LineState):
                variance *= factor.variance
        if self.process is None:
            return np.array([math.sqrt(variance)])
        if self.is_given:
            return math.sqrt(variance) * self.process.readout * self.scale
        return math.sqrt(variance * self.process.numbers()[0]) * self.process.readout

    @functools.cached_property
    def frequencies(self) -> tuple[float, ...]:
        """Of the cosines among its factors."""
        return tuple(f.frequency for f in self.factors if isinstance(f, HarmonicState))

    @property
    def ways(self) -> int:
        """How many blocks it has: one for each choice of cosine or sine, wave by wave."""
        return 2 ** len(self.frequencies)

    @property
    def size(self) -> int:
        """How many numbers of the core it has."""
        return len(self.readout) * self.ways

    def features(self, time: Times) -> Float[np.ndarray, "n w"]:
        """What multiplies the readout of each block at some times."""
        found = (time**self.lines)[:, None]
        for frequency in self.frequencies:
            both = found[:, :, None] * _turned(frequency, time)[:, None]
            found = both.reshape(len(time), 2 * found.shape[1])
        return found

    def by_wave(
        self,
        number: int,
        time: Times,
        features: Float[np.ndarray, "n w"],
        by: Float[np.ndarray, "n w"],
    ) -> float:
        """The derivative by a cosine's log frequency, from those by the features."""
        shape = (len(time), 2**number, 2, self.ways // 2 ** (number + 1))
        cosine, sine = np.moveaxis(features.reshape(shape), 2, 0)
        by_cosine, by_sine = np.moveaxis(by.reshape(shape), 2, 0)
        by_angle = np.sum(by_sine * cosine - by_cosine * sine, axis=(1, 2))
        return self.frequencies[number] * float(time @ by_angle)


def _factors(part: StateSpace) -> tuple[StateSpace, ...]:
    if isinstance(part, ProductState):
        return (*_factors(part.left), *_factors(part.right))
    return (part,)


class States:
    """The states of some latent functions and mean weights, and what each latent parameter sees.

    Args:
        law: The kernels' processes.
        loadings: Of each latent parameter on each latent function.
        spreads: The prior standard deviation of each latent parameter's mean weights.
        mixes: Whether rows may observe sums of latent parameters. The core then sees loadings as
            features of rows, and not as readouts of latent parameters.
    """

    def __init__(
        self,
        law: Law,
        loadings: Float[np.ndarray, "O Q"],
        spreads: Float[np.ndarray, "O B"],
        *,
        mixes: bool = False,
    ):
        self._origin, self._loadings, self._mixes = law.origin, loadings, mixes
        parts = zip(law.parts, law.latent, strict=True)
        self._parts = [_Part(latent, _factors(part)) for part, latent in parts]
        self._moving = sum(part.size for part in self._parts if part.process)
        # Moving numbers come first, then static ones; the weights of mean functions are the last.
        ends = {True: 0, False: self._moving}
        self._own: list[slice] = []
        for part in self._parts:
            begin = ends[part.process is not None]
            ends[part.process is not None] = begin + part.size
            self._own.append(slice(begin, begin + part.size))
        self._outputs, self._basis = spreads.shape
        self.size = ends[False] + spreads.size
        self._readouts = np.zeros((1 if mixes else len(loadings), self.size))
        self._feature = np.full(self.size, -1, np.int32)
        self._seen: list[slice] = []  # the features of each part
        begin = 0
        for part, own in zip(self._parts, self._own, strict=True):
            seen = np.tile(part.readout, part.ways)
            self._readouts[:, own] = seen if mixes else loadings[:, part.latent, None] * seen
            count = part.ways if mixes or part.lines or part.frequencies else 0
            self._seen.append(slice(begin, begin + count))
            if count:
                self._feature[own] = begin + np.repeat(np.arange(count), len(part.readout))
            begin += count
        self._width = begin
        weights = slice(ends[False], None)
        if mixes:
            self._readouts[0, weights] = np.ravel(spreads)
            self._feature[weights] = begin + np.arange(spreads.size)
        else:
            columns = np.arange(spreads.size).reshape(spreads.shape)
            self._readouts[np.arange(len(spreads))[:, None], ends[False] + columns] = spreads
            self._feature[weights] = begin + np.tile(np.arange(self._basis), self._outputs)

    # -- rows ------------------------------------------------------------------------------------

    def log_evidence(self, rows: Rows) -> float:
        """log p(rows)."""
        law, arguments, _ = self._arguments(rows)
        return _core.log_evidence(law, *arguments)

    def evidence(self, rows: Rows) -> Evidence:
        """log p(rows), and its derivatives by all that the law, the loadings and the noise tell."""
        law, arguments, gaps = self._arguments(rows)
        value, by_rate, by_readouts, by_features, by_noise, *by_given = _core.evidence(
            law, *arguments
        )
        time, features = rows.time - self._origin, arguments[6]
        by_own = np.sum(self._readouts * by_readouts, axis=0)
        by_loadings = np.zeros(self._loadings.shape)
        by_numbers: list[float] = []
        block = given = 0
        for part, own, seen in zip(self._parts, self._own, self._seen, strict=True):
            if self._mixes:  # a feature is a wave times the row's loading
                assert rows.mix is not None
                by_factor = np.sum(by_features[:, seen] * part.features(time), axis=1)
                by_loadings[:, part.latent] += rows.mix.T @ by_factor
            else:
                unit = np.tile(part.readout, part.ways)
                by_loadings[:, part.latent] += by_readouts[:, own] @ unit
            by_numbers.append(0.5 * float(by_own[own].sum()))
            by_process: Iterator[float] = iter(())
            if part.is_given:
                size = part.ways * len(part.readout) ** 2
                mine = [by[..., given : given + size] for by in by_given]
                weights = by_readouts[0, own]
                if not self._mixes:
                    weights = self._loadings[:, part.latent] @ by_readouts[:, own]
                by_process, given = _by_given(part, gaps, mine, weights), given + size
            elif part.process is not None:
                by_process = iter([-float(by_rate[block : block + part.ways].sum())])
            block += part.ways if part.process is not None else 0
            wave = itertools.count()
            for factor in part.factors:
                for _ in factor.numbers()[1:]:
                    if isinstance(factor, HarmonicState):
                        own_features = features[:, seen], by_features[:, seen]
                        by_numbers.append(part.by_wave(next(wave), time, *own_features))
                    else:
                        by_numbers.append(next(by_process))
        return Evidence(value, np.array(by_numbers), by_loadings, by_noise)

    def smoothed(self, rows: Rows, around: Around = ALONE) -> tuple[float, Times, Times]:
        """log p(rows), and mean and variance of f at each row given all rows."""
        law, arguments, after = self._arguments_between(rows, around)
        return _core.smooth(law, *arguments, before=around.before, after=after)

    def joint(
        self, rows: Rows, around: Around = ALONE
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m m"]]:
        """Mean and covariance of f where it is asked for, given all rows."""
        law, arguments, after = self._arguments_between(rows, around)
        return _core.joint(law, *arguments, before=around.before, after=after)

    def states(self, rows: Rows, around: Around = ALONE) -> StatesAt:
        """All numbers where f is asked for, given all rows."""
        law, arguments, after = self._arguments_between(rows, around)
        return StatesAt(*_core.states(law, *arguments, before=around.before, after=after))

    def checkpoints(self, rows: Rows, stops: Int[np.ndarray, " c"]) -> list[Around]:
        """What is known of rows before some rows, and of these and all after them.

        Args:
            rows: All rows there are.
            stops: Numbers of rows, in order.
        """
        law, arguments, _ = self._arguments(rows)
        found = _core.checkpoints(law, *arguments, stops=stops.astype(np.int32))
        return [Around(before, after) for before, after in zip(*found, strict=True)]

    def filtered(
        self, rows: Rows, before: Numbers | None
    ) -> tuple[Numbers, tuple[Times, Times, Times]]:
        """The filter after rows that come next.

        Args:
            rows: None of them before those that the filter has seen.
            before: The filter before them; None if there were no rows.

        Returns:
            The filter, and of each row mean and variance of f and the log density of its value,
            given those before it.
        """
        law, arguments, _ = self._arguments_between(rows, Around(before))
        stream = _core.Stream(law)
        if before is not None:
            stream.restore(before)
        found = stream.append(*arguments)
        return stream.state(), found

    # -- latent functions ------------------------------------------------------------------------

    def readouts(
        self, time: Times, owner: tuple[int, ...], owners: int
    ) -> Float[np.ndarray, "m K d"]:
        """How groups of parts follow from the numbers of the states at some times.

        Args:
            time: When.
            owner: The group of each part.
            owners: How many groups there are.
        """
        found = np.zeros((len(time), owners, self.size))
        since = time - self._origin
        for part, own, group in zip(self._parts, self._own, owner, strict=True):
            waves = part.features(since)
            seen = waves[:, :, None] * part.readout
            found[:, group, own] = seen.reshape(len(time), part.size)
        return found

    # -- what the core is told -------------------------------------------------------------------

    def _arguments(self, rows: Rows) -> tuple[_core.Law, tuple, Times]:
        """The law, the columns of the rows, and the distinct gaps if matrices are needed there."""
        gaps, which = _NOTHING, None
        if self._has_given:
            gaps, after = distinct_gaps(rows.time)
            which = np.concatenate([[0], after]).astype(np.int32)
        return self._law(gaps), self._columns(rows, which), gaps

    def _arguments_between(
        self, rows: Rows, around: Around
    ) -> tuple[_core.Law, tuple, Numbers | None]:
        """The law, the columns of rows that lie between others, and what those after them say."""
        if not self._has_given:
            return self._law(_NOTHING), self._columns(rows, None), around.after
        first = rows.time[:1] if around.before is None else around.before[1:2]
        last = rows.time[-1:] if around.after is None else around.after[:1]
        gaps, which = distinct_gaps(np.concatenate([first, rows.time, last]))
        after = around.after
        if after is not None:
            after = after.copy()
            after[1] = which[-1]
        return self._law(gaps), self._columns(rows, which[:-1].astype(np.int32)), after

    def _columns(self, rows: Rows, which: Int[np.ndarray, " n"] | None) -> tuple:
        time = rows.time - self._origin
        features = np.empty((len(time), self._width + self._basis_columns))
        for part, seen in zip(self._parts, self._seen, strict=True):
            if seen.stop > seen.start:
                features[:, seen] = part.features(time)
                if self._mixes:
                    assert rows.mix is not None
                    features[:, seen] *= (rows.mix @ self._loadings[:, part.latent])[:, None]
        if self._mixes:
            assert rows.mix is not None
            weights = rows.mix[:, :, None] * rows.basis[:, None, :]
            features[:, self._width :] = weights.reshape(len(time), -1)
            output = np.zeros(len(time), np.int32)
        else:
            features[:, self._width :] = rows.basis
            output = np.ascontiguousarray(rows.output, np.int32)
        columns = map(np.ascontiguousarray, (rows.time, rows.value, rows.noise))
        return (*columns, output, self._readouts, self._feature, features, which)

    @property
    def _basis_columns(self) -> int:
        return self._basis * (self._outputs if self._mixes else 1)

    @functools.cached_property
    def _has_given(self) -> bool:
        return any(part.is_given for part in self._parts)

    def _law(self, gaps: Times) -> _core.Law:
        if not self._has_given:
            return self._known_law
        return self._law_over(gaps)

    @functools.cached_property
    def _known_law(self) -> _core.Law:
        return self._law_over(_NOTHING)

    def _law_over(self, gaps: Times) -> _core.Law:
        kinds: list[int] = []
        sizes: list[int] = []
        rates: list[float] = []
        given = [(_NOTHING, *np.zeros((2, len(gaps), 0)))]
        for part in self._parts:
            process, count = part.process, part.ways
            if process is None:
                continue
            kinds += [part.kind] * count
            sizes += [len(part.readout)] * count
            if isinstance(process, MaternState):
                rates += [math.sqrt(2 * process.order + 1) / process.lengthscale] * count
            else:
                rates += [1.0] * count
                given += [_scaled(part, *_matrices(process, gaps))] * count
        starts, moves, noises = zip(*given, strict=True)
        numbers = np.array(kinds, np.int32), np.array(sizes, np.int32), np.array(rates, float)
        matrices = np.concatenate(starts), np.hstack(moves), np.hstack(noises)
        return _core.Law(*numbers, self.size - self._moving, *matrices)


def _matrices(process: StateSpace, gaps: Times) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return process.covariance(0.0), *process.transition(gaps)


def _scaled(
    part: _Part, start: np.ndarray, a: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices of a process that is handed over in its units, as rows of numbers."""
    outer, turn = np.outer(part.scale, part.scale), part.scale / part.scale[:, None]
    return np.ravel(start / outer), (a * turn).reshape(len(a), -1), (q / outer).reshape(len(q), -1)


def _by_given(
    part: _Part, gaps: Times, by: list[np.ndarray], by_readout: Float[np.ndarray, " d"]
) -> Iterator[float]:
    """The derivatives by a process's numbers but the variance, from those by its matrices."""
    assert part.process is not None
    by_start, by_a, by_q = (own.reshape(*own.shape[:-1], part.ways, -1).sum(axis=-2) for own in by)
    by_readout = by_readout.reshape(part.ways, -1).sum(axis=0)
    amplitude = part.readout @ part.readout / (part.process.readout * part.scale @ part.readout)
    for larger, smaller in part.process.variants(_DIFFERENCE):
        one, other = (_scaled(part, *_matrices(p, gaps)) for p in (larger, smaller))
        change = sum(
            np.vdot(own, a - b)
            for own, a, b in zip((by_start, by_a, by_q), one, other, strict=True)
        )
        seen = amplitude * part.scale * (larger.readout - smaller.readout)
        yield float(change + by_readout @ seen) / (2 * _DIFFERENCE)
