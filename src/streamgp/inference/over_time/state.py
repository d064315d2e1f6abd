"""RowState: what is kept of the past over time: a table of rows, and the end of the filter."""

import dataclasses
import functools
import itertools
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.components import Parts
from streamgp.inference.kept import Kept, joined
from streamgp.inference.on_rows import StateOnRows
from streamgp.inference.over_time.states import Around, Numbers, Rows, StatesAt
from streamgp.inference.over_time.states import joined as joined_rows
from streamgp.inference.over_time.window import Window, World, between, scalars, seen
from streamgp.inference.posterior import Marginals
from streamgp.model.composition import Composition
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, unwrap
from streamgp.registry import storable


class Place(NamedTuple):
    """A place among the rows: how many lie before it, and the filter after these."""

    row: int
    filter: Numbers | None


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class RowState(StateOnRows):
    """All that is kept of the past, and nothing that can be derived but the end of the filter.

    Attributes:
        model: The hyperparameters, still wrapped: constrained, with priors.
        blocks: The kept rows, in the order of time.
        heard: The observations of each channel that they stand for, faded ones in part.
        closed: How many rows have sites that do not change as others come at the end.
        end: The filter after these rows; None if there are none.
    """

    model: MultiTaskGP
    blocks: tuple[Kept, ...]
    heard: Float[np.ndarray, " D"]
    closed: int = 0
    end: Numbers | None = None

    judged: ClassVar[int] = 1024

    # What follows from the fields is computed once, when it is first asked for.

    @functools.cached_property
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""
        return unwrap(self.model)

    @functools.cached_property
    def world(self) -> World:
        """The plain model and its states."""
        return World(self.plain)

    @functools.cached_property
    def kept(self) -> Kept:
        """All kept rows."""
        return joined([Kept.none(self.plain), *self.blocks])

    @functools.cached_property
    def begins(self) -> tuple[int, ...]:
        """The number of the first row of each block, and how many rows there are."""
        return tuple(itertools.accumulate((block.size for block in self.blocks), initial=0))

    @property
    def size(self) -> int:
        """How many rows are kept."""
        return self.begins[-1]

    def since(self, row: int) -> Kept:
        """The rows from one on."""
        number = self.block_of(row)
        if number == len(self.blocks):
            return Kept.none(self.plain)
        rest = joined(self.blocks[number:]) if number + 1 < len(self.blocks) else self.blocks[-1]
        return rest.take(slice(row - self.begins[number], None))

    def place_of(self, time: float) -> int:
        """How many rows are not later than a time."""
        if not self.blocks or time >= self.blocks[-1].time[-1]:
            return self.size
        number = max(int(np.searchsorted(self._first_times, time, side="right")) - 1, 0)
        own = np.searchsorted(self.blocks[number].time, time, side="right")
        return self.begins[number] + int(own)

    @functools.cached_property
    def _first_times(self) -> Float[np.ndarray, " b"]:
        return np.array([block.time[0] for block in self.blocks])

    def block_of(self, row: int) -> int:
        """The number of the block that a row is in; that of a further one if there is none."""
        if row == self.size:
            return len(self.blocks)
        return int(np.searchsorted(self.begins, row, side="right")) - 1

    # -- the filter and the smoother -------------------------------------------------------------

    def filter_before(self, row: int) -> Place:
        """The last place with a known filter that is not behind a row."""
        if self.closed <= row:
            return Place(self.closed, self.end)
        number = self.block_of(row)
        return Place(self.begins[number], self.filters[number])

    @functools.cached_property
    def filters(self) -> tuple[Numbers | None, ...]:
        """The filter before each block."""
        found = list(vars(self).get("_known_filters", (None,)))
        for block in self.blocks[len(found) - 1 : -1]:
            after, _ = self.world.states.filtered(scalars(self.world, block), found[-1])
            found.append(after)
        return tuple(found[: len(self.blocks)])

    @functools.cached_property
    def arounds(self) -> tuple[Around, ...]:
        """What is known of rows before and after each block."""
        if len(self.blocks) < 2:
            return (Around(),) * len(self.blocks)
        rows, ends = self._every_scalar
        stops = self.world.states.checkpoints(rows, ends[1:-1])
        filters = [None, *(stop.before for stop in stops)]
        afters = [*(stop.after for stop in stops), None]
        return tuple(Around(b, a) for b, a in zip(filters, afters, strict=True))

    @functools.cached_property
    def _every_scalar(self) -> tuple[Rows, np.ndarray]:
        """All rows as the core has them, and where those of each block end."""
        rows = scalars(self.world, self.kept)
        begins = np.array(self.begins)
        if not self.world.mixes:
            return rows, begins
        latents = [channel.likelihood.latents for channel in self.plain.channels]
        return rows, np.cumsum([0, *np.take(latents, self.kept.channel)])[begins]

    def states_at(self, time: Float[np.ndarray, " m"]) -> StatesAt:
        """All numbers of the states at some times, in any order, given all rows."""
        order = np.argsort(time, kind="stable")
        asked, size = time[order], self.world.states.size
        mean, covariance = np.empty((len(time), size)), np.empty((len(time), size, size))
        for where, rows, around in self._pieces(asked):
            found = self.world.states.states(between(rows, self.world.asking(asked[where])), around)
            mean[order[where]], covariance[order[where]] = found
        return StatesAt(mean, covariance)

    def marginals(self, batch: Batch) -> Marginals:
        """q(f) of rows anywhere, given all kept rows."""
        window = Window(self.world, batch)
        if self.world.mixes:
            at = self.states_at(batch.x[:, 0])
            mean, covariance = seen(batch, self.world.design(batch), at)
        else:
            mean, variance = self._single_marginals(window)
            covariance = (variance[:, None, None],)
        return Marginals(window.features.offset + mean, covariance, mean, covariance)

    def _single_marginals(
        self, window: Window
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
        """Mean and variance where every row has one latent parameter."""
        batch, model = window.batch, self.plain
        output = model.outputs.first[batch.channel]
        nothing, one = np.full(batch.size, np.nan), np.ones(batch.size)
        asking = Rows(batch.x[:, 0], nothing, one, output, model.basis(batch))
        order = np.argsort(asking.time, kind="stable")
        asking = asking.take(order)
        mean, variance = np.empty((2, batch.size))
        for where, rows, around in self._pieces(asking.time):
            asked = asking.take(where)
            whole = between(rows, asked) if len(rows.time) else asked
            _, *found = self.world.states.smoothed(whole, around)
            asks = np.isnan(whole.value)
            mean[order[where]], variance[order[where]] = (own[asks] for own in found)
        return mean, variance

    def joint(
        self, batches: list[Batch]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """Mean and covariance of the latent parameters of all rows of some batches together."""
        asked = [self._asking_for(batch) for batch in batches]
        asking = joined_rows(asked)
        order = np.argsort(asking.time, kind="stable")
        asking = asking.take(order)
        is_ahead = not self.size or self.place_of(float(asking.time[0])) >= self.closed
        rows = self.since(self.closed if is_ahead else 0)
        around = Around(self.end if is_ahead else None)
        found = self.world.states.joint(between(scalars(self.world, rows), asking), around)
        back = np.argsort(order)
        offset = np.concatenate([Window(self.world, batch).features.offset for batch in batches])
        return offset + found[0][back], found[1][np.ix_(back, back)]

    def _asking_for(self, batch: Batch) -> Rows:
        """Rows that ask for each latent parameter of a batch of one channel."""
        latents = batch.runs[0].latents
        time = np.repeat(batch.x[:, 0], latents)
        output = np.tile(
            self.plain.outputs.first[batch.channel[0]] + np.arange(latents), batch.size
        )
        basis = np.repeat(self.plain.basis(batch), latents, axis=0)
        mix = np.eye(len(self.world.loadings))[output] if self.world.mixes else None
        return Rows(time, np.full(len(time), np.nan), np.ones(len(time)), output, basis, mix)

    def _pieces(self, time: Float[np.ndarray, " m"]) -> list[tuple[slice, Rows, Around]]:
        """Which of some times in order go with which rows, and with what is known around these."""
        if not len(time):
            return []
        if not self.blocks or self.place_of(float(time[0])) >= self.closed:
            rows = self._latest
            return [(slice(0, len(time)), rows, Around(self.end))]
        number = np.maximum(np.searchsorted(self._first_times, time, side="right") - 1, 0)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(time)]])
        return [
            (slice(a, b), scalars(self.world, self.blocks[number[a]]), self.arounds[number[a]])
            for a, b in itertools.pairwise(starts.tolist())
        ]

    @functools.cached_property
    def _latest(self) -> Rows:
        """The rows behind the end of the filter."""
        return scalars(self.world, self.since(self.closed))

    def parts(self, x: Float[np.ndarray, "N P"], composition: Composition) -> Parts:
        """The parts of latent functions, and the weights of mean functions."""
        at, weights = self.states_at(x[:, 0]), self.plain.basis_spreads().size
        counts = [len(kernel.state_space() or ()) for kernel in composition.summands]
        owner = tuple(np.repeat(np.arange(len(counts)), counts).tolist())
        readouts = self.world.states.readouts(x[:, 0], owner, len(counts))
        last = slice(self.world.states.size - weights, None)
        bent = readouts @ at.covariance
        return Parts(
            mean=(readouts @ at.mean[:, :, None])[:, :, 0],
            covariance=bent @ np.swapaxes(readouts, 1, 2),
            across=bent[:, :, last],
            weights=at.mean[0, last],
            weights_covariance=at.covariance[0, last, last],
        )

    def latents(
        self, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q Q"]]:
        """Mean and covariance of the latent functions at some inputs."""
        at, law = self.states_at(x[:, 0]), self.world.law
        readouts = self.world.states.readouts(x[:, 0], law.latent, law.latents)
        mean = (readouts @ at.mean[:, :, None])[:, :, 0]
        return mean, readouts @ at.covariance @ np.swapaxes(readouts, 1, 2)

    @functools.cached_property
    def mean_weights(self) -> Float[np.ndarray, "O B"]:
        """E_q[β]: the expected weights of each latent parameter's mean functions."""
        spreads = self.plain.basis_spreads()
        if not spreads.size:
            return spreads
        last = self.blocks[-1].time[-1:] if self.blocks else np.ravel(self.plain.origin)[:1]
        weights = self.states_at(last).mean[0, self.world.states.size - spreads.size :]
        return spreads * weights.reshape(spreads.shape)

    def with_channel(self, model: MultiTaskGP, latents: int) -> "RowState":
        """The same with a further channel, the last of that model, of which nothing is known."""
        none = Kept.none(unwrap(model))
        blocks = tuple(block.widened(none) for block in self.blocks)
        return RowState(model, blocks, np.append(self.heard, 0.0))

    def replace(self, **changes: Any) -> "RowState":
        """A copy with some fields changed, by name, and nothing that follows from the others."""
        if changes.get("model", self.model) is not self.model:  # the filter was another model's
            changes = {"closed": 0, "end": None, **changes}
        return RowState(**{**self.__getstate__(), **changes})

    def is_finite(self, before: "RowState | None" = None) -> bool:
        """Whether all numbers are finite, those that it shares with another state apart."""
        arrays = [self.heard]
        if self.end is not None:
            arrays.append(self.end)
        if before is None or self.model is not before.model:
            arrays.append(free_vector(self.model))
        known = () if before is None else before.blocks
        for number, block in enumerate(self.blocks):
            if number >= len(known) or block is not known[number]:
                arrays += [block.x, block.count, block.energy, block.linear, block.precision]
        return math.isfinite(np.concatenate([array.ravel() for array in arrays]).sum())
