"""Latent functions of time as the states of the compiled core, and the way back to derivatives.

The core knows blocks of moving numbers, static numbers, and what each row sees of them (`core/`).
Here kernels are put in its terms. A constant is a static number, and so is a line, seen through
the time, and each weight of a mean function. A cosine is two static numbers in the frame that turns
with it, seen through cos ωt and sin ωt: cos ω(t − t′) = cos ωt cos ωt′ + sin ωt sin ωt′. In the
same way a process times a cosine is two processes. Amplitudes are in the readouts, so that
derivatives by variances are derivatives by readouts. A process that the core does not know is
handed over as matrices over each distinct gap.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from streamgp import _core
from streamgp.inference.over_time.law import Law, distinct_gaps
from streamgp.inference.over_time.parts import Part, Times, matrices

_NOTHING = np.zeros(0)

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
        self._parts = list(map(Part, law.latent, law.parts))
        self._moving = sum(part.size for part in self._parts if part.moves)
        # Moving numbers come first, then static ones; the weights of mean functions are the last.
        ends = {True: 0, False: self._moving}
        self._own: list[slice] = []
        for part in self._parts:
            begin = ends[part.moves]
            ends[part.moves] = begin + part.size
            self._own.append(slice(begin, begin + part.size))
        self._outputs, self._basis = spreads.shape
        self.size = ends[False] + spreads.size
        self._readouts = np.zeros((1 if mixes else len(loadings), self.size))
        self._feature = np.full(self.size, -1, np.int32)
        self._seen: list[slice] = []  # the features of each part
        begin = 0
        for part, own in zip(self._parts, self._own, strict=True):
            seen = np.tile(part.process.readout, part.ways)
            self._readouts[:, own] = seen if mixes else loadings[:, part.latent, None] * seen
            count = part.ways if mixes or part.has_features else 0
            self._seen.append(slice(begin, begin + count))
            if count:
                self._feature[own] = begin + np.repeat(np.arange(count), len(part.process.readout))
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
        value, by_rate, by_readouts, by_features, by_noise, *by_matrices = _core.evidence(
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
                unit = np.tile(part.process.readout, part.ways)
                by_loadings[:, part.latent] += by_readouts[:, own] @ unit
            by_numbers.append(0.5 * float(by_own[own].sum()))
            by_numbers += part.by_waves(time, features[:, seen], by_features[:, seen])
            if part.is_given:
                size = part.ways * len(part.process.readout) ** 2
                mine = [by[..., given : given + size] for by in by_matrices]
                weights = by_readouts[0, own]
                if not self._mixes:
                    weights = self._loadings[:, part.latent] @ by_readouts[:, own]
                by_numbers += part.by_given(gaps, mine, weights)
                given += size
            elif part.moves:
                by_numbers.append(float(by_rate[block : block + part.ways].sum()))
            block += part.ways if part.moves else 0
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
            seen = waves[:, :, None] * part.process.readout
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
            if part.moves:
                kinds += [part.kind] * part.ways
                sizes += [len(part.process.readout)] * part.ways
                rates += [part.rate] * part.ways
            if part.is_given:
                given += [matrices(part.process, gaps)] * part.ways
        starts, moves, noises = zip(*given, strict=True)
        numbers = np.array(kinds, np.int32), np.array(sizes, np.int32), np.array(rates, float)
        given_matrices = np.concatenate(starts), np.hstack(moves), np.hstack(noises)
        return _core.Law(*numbers, self.size - self._moving, *given_matrices)
