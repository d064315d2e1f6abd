"""ChainState: what is kept of the past when it is kept as a chain of states over time."""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.chain.known import Known
from streamgp.inference.chain.law import Between, Law
from streamgp.inference.chain.mixing import Mixing
from streamgp.inference.chain.open_rows import OpenRows
from streamgp.inference.chain.segments import Segment, triangle
from streamgp.inference.chain.setting import ChainSetting, meeting
from streamgp.inference.e_step import Fit
from streamgp.inference.likelihood_memory import expand_likelihoods, needs_memory
from streamgp.inference.memory import Memory, blank, joined
from streamgp.inference.past import counted
from streamgp.inference.reading import Reading
from streamgp.inference.sites import RowSites
from streamgp.inference.weight_uncertainty import open_weights
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import field_names, free_size, free_vector, unwrap
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Totals:
    """What past data say beside their sites, of each pair of latent parameters or each channel.

    Attributes:
        slack: Σ P·open variance of each latent function, one row per pair.
        mass: Σ P of each pair.
        count: The number of rows of each channel; of weighted rows, the sum of their weights.
        energy: Σ P⁻¹b² of each channel whose noise scales its sites, zero of the others.
    """

    slack: Float[np.ndarray, "C Q"]
    mass: Float[np.ndarray, " C"]
    count: Float[np.ndarray, " D"]
    energy: Float[np.ndarray, " D"]

    @classmethod
    def blank(cls, model: MultiTaskGP) -> "Totals":
        """No data."""
        pairs, channels = len(model.outputs.left), len(model.channels)
        latents = sum(model.draws)
        return cls(
            np.zeros((pairs, latents)), np.zeros(pairs), np.zeros(channels), np.zeros(channels)
        )

    def arrays(self) -> list[np.ndarray]:
        """All numbers."""
        return [self.slack, self.mass, self.count, self.energy]

    def scaled(self, part: float) -> "Totals":
        """What was said, with that part of its say."""
        return Totals(*(part * array for array in self.arrays()))

    def with_slack(self, more: Float[np.ndarray, "C Q"]) -> "Totals":
        """With more left open."""
        return dataclasses.replace(self, slack=self.slack + more)

    def with_channel(self, latents: int) -> "Totals":
        """With a further channel, of which nothing is known."""
        pairs = latents * (latents + 1) // 2
        return Totals(
            np.pad(self.slack, ((0, pairs), (0, 0))),
            np.pad(self.mass, (0, pairs)),
            np.pad(self.count, (0, 1)),
            np.pad(self.energy, (0, 1)),
        )

    def with_rows(
        self, model: MultiTaskGP, batch: Batch, rows: RowSites, between: Between
    ) -> "Totals":
        """With what rows said."""
        slack, mass, count, energy = (array.copy() for array in self.arrays())
        outputs = model.outputs
        for group in batch.groups:
            strength = model.channels[group.channel].likelihood.strength
            p = rows.precision[group.run][group.within] / strength
            pairs, j, k = outputs.within[group.channel]
            weight = p[:, j, k]
            slack[pairs] += (between.open[:, group.rows] @ weight).T
            mass[pairs] += weight.sum(axis=0)
            own_count, own_energy = counted(model, group)
            count[group.channel] += own_count
            energy[group.channel] += own_energy
        return Totals(slack, mass, count, energy)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class ChainState:
    """All that is kept of the past. No data but open rows, and nothing that can be derived.

    Attributes:
        model: The hyperparameters, still wrapped: constrained, with priors.
        segments: What data said of the states at the times of the chain, in the order of time.
        totals: What they said beside that.
        memory: How past data depend on parameters of likelihoods in ways that sums cannot tell.
        heard: The observations of each channel that it stands for, faded ones in part.
        open: The latest rows of channels that are not conjugate, if some are kept open. They are
            neither in `segments` nor in `totals` nor in `memory`.
    """

    model: MultiTaskGP
    segments: tuple[Segment, ...]
    totals: Totals
    memory: Memory
    heard: Float[np.ndarray, " D"]
    open: OpenRows | None = None

    # What follows from the fields is computed once, when it is first asked for.

    @functools.cached_property
    def whole(self) -> "ChainState":
        """The same with what open rows say, as their sites are now, among the sums."""
        if self.open is None:
            return self
        setting = self._of_open
        return with_sums(self, setting, self.open.sites(setting.batch), open=None)

    @functools.cached_property
    def closed(self) -> "ChainState":
        """The same with no row open: what open rows said is as it is now, and is remembered."""
        if self.open is None or not needs_memory(self.model):
            return self.whole
        setting = self._of_open
        _, at_rows = setting.conditioned(self.open.sites(setting.batch))
        said = joined(blank(self.model.kernels), expand_likelihoods(self.model, setting, at_rows))
        return following(self.whole, self.whole.known, memory=self.memory + said)

    @functools.cached_property
    def _of_open(self) -> ChainSetting:
        """The open rows that meet the chain."""
        assert self.open is not None
        return meeting(self.known, self.plain, self.model.batch(self.open.rows))

    @functools.cached_property
    def every_total(self) -> Totals:
        """The totals of all rows, open ones included."""
        if self.open is None:
            return self.totals
        setting = self._of_open
        return self.totals.with_rows(
            self.plain, setting.batch, self.open.sites(setting.batch), setting.seen.between
        )

    @functools.cached_property
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""
        return unwrap(self.model)

    @functools.cached_property
    def mixing(self) -> Mixing:
        """The law of the states, and the weights and noises under which the past is read."""
        return Mixing(Reading.of(self.plain), Law.of(self.plain))

    @functools.cached_property
    def known(self) -> Known:
        """What data say of the states, open rows apart."""
        return Known.of(self.mixing, self.segments)

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of inducing times, of each latent function."""
        known = vars(self).get("known")  # if it was computed, it has the count
        count = sum(s.count for s in self.segments) if known is None else known.count
        return (count + bool(self.segments),) * sum(self.model.draws)

    @property
    def times(self) -> Float[np.ndarray, " M"]:
        """The inducing times."""
        parts = [segment.times[:-1] for segment in self.segments]
        last = [segment.times[-1:] for segment in self.segments[-1:]]
        return np.concatenate([np.zeros(0), *parts, *last])

    @property
    def explored(self) -> Float[np.ndarray, "_ 1"]:
        """The times at which states were spoken of, as inputs."""
        size, found = self.mixing.law.size, [np.zeros(0)]
        if self.open is not None:
            found.append(self.open.x[:, 0])
        for segment in self.segments:
            place = triangle(segment.features)[2]
            ends = (slice(size), segment.times[:-1]), (slice(size, 2 * size), segment.times[1:])
            for own, times in ends:
                spoken = segment.precision[:, :, np.ravel(place[own, own])].any(axis=(1, 2))
                found.append(times[spoken])
        return np.unique(np.concatenate(found))[:, None]

    @property
    def points(self) -> tuple[Float[np.ndarray, "M 1"], ...]:
        """The inducing times as points of each latent function."""
        return (self.times[:, None],) * sum(self.model.draws)

    @property
    def has_cells(self) -> bool:
        """A chain needs none: it holds its past at as many times as the rows ask for."""
        return False

    @property
    def open_variance(self) -> Float[np.ndarray, " Q"]:
        """The part of each latent function's variance at past rows that its times leave open."""
        reading, totals = self.mixing.reading, self.every_total
        left = reading.open(totals).sum(axis=0)
        whole = (reading.slack_weights * totals.mass[:, None]).sum(axis=0)
        whole *= self.mixing.law.variance
        return left / np.maximum(whole, 1e-300)

    @functools.cached_property
    def open_weights(self) -> tuple[Float[np.ndarray, "_J Q _J Q"], ...]:
        """What data leave open about the loadings of each channel; nothing, if they are fixed."""
        if not any(free_size(channel.weights) for channel in self.model.channels):
            shapes = [channel.weights.shape for channel in self.plain.channels]
            return tuple(np.zeros((*shape, *shape)) for shape in shapes)
        held, diagonal = self.whole.known.stiffness.copy(), np.arange(sum(self.model.draws))
        held[:, diagonal, diagonal] += self.every_total.slack
        reading = self.mixing.reading
        strength = reading.strength[reading.outputs.pair_channel]
        return open_weights(self.model, strength[:, None, None] * held)

    @property
    def mean_weights(self) -> Float[np.ndarray, "O B"]:
        """E_q[β]: the expected weights of each latent parameter's mean functions."""
        spreads = self.mixing.reading.spreads
        return spreads * self.whole.known.weights.mean.reshape(spreads.shape)

    @property
    def count(self) -> float:
        """The observations that the state stands for, faded ones in part."""
        return float(np.sum(self.heard))

    def with_channel(self, model: MultiTaskGP, latents: int) -> "ChainState":
        """The same with a further channel, the last of that model, of which nothing is known."""
        states, basis = 2 * self.mixing.law.size, model.basis_size
        return self.replace(
            model=model,
            segments=tuple(s.with_channel(latents, states, basis) for s in self.segments),
            totals=self.totals.with_channel(latents),
            memory=self.memory.widened(free_size(model)),
            heard=np.append(self.heard, 0.0),
        )

    def replace(self, **changes: Any) -> "ChainState":
        """A copy with some fields changed, by name, and nothing that follows from the others."""
        return ChainState(**{**self.__getstate__(), **changes})

    def is_finite(self, before: "ChainState | None" = None) -> bool:
        """Whether all numbers are finite, those that it shares with another state apart."""
        arrays = [self.heard, *self.totals.arrays()]
        if self.open is not None:
            arrays += self.open.arrays()
        if before is None or self.memory is not before.memory:
            arrays += [self.memory.gradient, self.memory.precision]
        if before is None or self.model is not before.model:
            arrays.append(free_vector(self.model))
        for segment in self._apart_from(() if before is None else before.segments):
            arrays += [segment.times, segment.linear, segment.precision]
        return math.isfinite(np.concatenate([array.ravel() for array in arrays]).sum())

    def _apart_from(self, others: tuple[Segment, ...]) -> list[Segment]:
        """The segments that are not among others."""
        old = max(len(others) - 1, 0)
        if self.segments[:old] == others[:old]:  # as at the end of a stream
            return [segment for segment in self.segments[old:] if segment not in others[old:]]
        shared = set(map(id, others))
        return [segment for segment in self.segments if id(segment) not in shared]

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the fields only."""
        return {name: getattr(self, name) for name in field_names(ChainState)}


def following(state: ChainState, known: Known, **changes: Any) -> ChainState:
    """The state with other segments under the same hyperparameters, whose links are known."""
    after = state.replace(segments=known.segments, **changes)
    vars(after).update(plain=state.plain, mixing=state.mixing, known=known)
    return after


def with_sums(
    state: ChainState,
    setting: ChainSetting,
    rows: RowSites,
    fit: Fit | None = None,
    **changes: Any,
) -> ChainState:
    """The state with what rows said, and with other changes.

    Where sites are those of a fit as they are, the fit saves computing what follows from them.
    """
    window = setting.window
    segment = window.segment.with_rows(setting.said(rows))
    known = setting.known.replaced(window, segment, *setting.absorbed(rows, segment, fit))
    totals = state.totals.with_rows(setting.model, setting.batch, rows, setting.seen.between)
    return following(state, known, totals=totals, **changes)
