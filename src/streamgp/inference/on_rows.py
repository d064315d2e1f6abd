"""What the engines that keep rows have in common: how rows are read, and which are joined when.

Over time rows are read by a filter (`over_time`), elsewhere by a Cholesky factor (`dense`). Either
gives marginals at rows anywhere, joint covariances, and the latent functions; the rest is here.
"""

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from streamgp.data.batch import Batch, Rows, join
from streamgp.inference.alternating import Steps, alternated
from streamgp.inference.components import Contributions, Parts, contributions
from streamgp.inference.e_step import Fit, exact_sites_at
from streamgp.inference.kept import Kept
from streamgp.inference.posterior import Marginals
from streamgp.inference.scoring import Scored, scored
from streamgp.inference.unobserved import unobserved
from streamgp.inference.vem import VEM
from streamgp.inference.weight_uncertainty import open_weights, spread_of_weights
from streamgp.model.composition import Composition
from streamgp.model.mixing import offsets
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import field_names, free_size

Inputs = Float[np.ndarray, "N P"]
_FADED = 1e-9  # of an observation: a row that fades to less is dropped
_FOLLOWING = 10  # evaluations of an M step that only follows sites that have moved a little
_TOGETHER = 2048  # inputs that are predicted at once


class StateOnRows(ABC):
    """All that is kept of the past, where that is rows."""

    # How many rows tell how sure weights are; more are taken to be like them.
    judged: ClassVar[int]

    model: MultiTaskGP
    blocks: tuple[Kept, ...]
    heard: Float[np.ndarray, " D"]

    @property
    @abstractmethod
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""

    @property
    @abstractmethod
    def kept(self) -> Kept:
        """All kept rows."""

    @abstractmethod
    def marginals(self, batch: Batch) -> Marginals:
        """q(f) of rows anywhere, given all kept rows."""

    @abstractmethod
    def joint(
        self, batches: list[Batch]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """Mean and covariance of the latent parameters of all rows of some batches together."""

    @abstractmethod
    def latents(self, x: Inputs) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q Q"]]:
        """Mean and covariance of the latent functions at some inputs."""

    @abstractmethod
    def parts(self, x: Inputs, composition: Composition) -> Parts:
        """The parts of latent functions, and the weights of mean functions."""

    @property
    def size(self) -> int:
        """How many rows are kept."""
        return sum(block.size for block in self.blocks)

    @property
    def kept_rows(self) -> int:
        """How many rows of the past are kept."""
        return self.size

    @property
    def kept_bytes(self) -> int:
        """How many bytes the kept rows take."""
        return sum(block.bytes for block in self.blocks)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of kept rows, for each latent function."""
        return (self.size,) * sum(self.model.draws)

    @functools.cached_property
    def explored(self) -> Float[np.ndarray, "_ P"]:
        """The inputs of kept rows."""
        return np.unique(self.kept.x, axis=0)

    @property
    def points(self) -> tuple[Float[np.ndarray, "_ P"], ...]:
        """The inputs of kept rows as points of each latent function."""
        return (self.explored,) * sum(self.model.draws)

    @property
    def open_variance(self) -> Float[np.ndarray, " Q"]:
        """Nothing: rows are kept where they are."""
        return np.zeros(sum(self.model.draws))

    @property
    def count(self) -> float:
        """The observations that the state stands for, faded ones in part."""
        return float(np.sum(self.heard))

    def rows_with(self, rows: Rows) -> Rows:
        """All kept rows of which values are known, and new ones behind them."""
        kept = self.kept.take(~np.isnan(self.kept.y[:, 0]))
        return join([Rows(kept.x, kept.y, kept.channel.astype(int), rows.names), rows], rows.names)

    @functools.cached_property
    def open_weights(self) -> tuple[Float[np.ndarray, "_J Q _J Q"], ...]:
        """What data leave open about the loadings of each channel; nothing, if they are fixed."""
        if not any(free_size(channel.weights) for channel in self.model.channels):
            shapes = [channel.weights.shape for channel in self.plain.channels]
            return tuple(np.zeros((*shape, *shape)) for shape in shapes)
        return open_weights(self.model, self._stiffness)

    @property
    def _stiffness(self) -> Float[np.ndarray, "C Q Q"]:
        """Σ P E[u uᵀ] over all rows, of each pair of latent parameters."""
        outputs, latents = self.plain.outputs, sum(self.model.draws)
        found = np.zeros((outputs.pairs, latents, latents))
        step = -(-self.size // self.judged)
        if not step:
            return found
        some = self.kept.take(slice(step // 2, None, step))
        batch = some.batch(self.plain)
        sites = exact_sites_at(self.plain, batch, offsets(self.plain, batch), some.sites(batch))
        mean, second = self.latents(batch.x)
        second = second + mean[:, :, None] * mean[:, None, :]
        for group in batch.groups:
            pairs, j, k = outputs.within[group.channel]
            weight = sites.precision[group.run][group.within][:, j, k]
            found[pairs] += step * np.einsum("np,nqr->pqr", weight, second[group.rows])
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the fields only."""
        return {name: getattr(self, name) for name in field_names(type(self))}


@dataclasses.dataclass(frozen=True)
class LearnerOnRows(ABC):
    """How updates are made on rows. See `Learner` for the settings.

    Args:
        learning: How hyperparameters are learned; None leaves them alone.
        e_rounds: The largest number of rounds of an E step.
        e_tolerance: The gain of the bound, in nats, below which an E step ends.
        weight_uncertainty: Whether predictions include what data leave open about mixing weights.
        keep: How many rows are kept before some are joined; None for all, "auto" for what suits.
    """

    learning: VEM | None
    e_rounds: int
    e_tolerance: float
    weight_uncertainty: bool
    keep: int | str | None = None

    on_rows: ClassVar[bool] = True
    # Where noise is less than that part of the data's spread, rounding would take over.
    least_noise: ClassVar[float] = 1e-4

    def with_rule(self, rule: VEM | None) -> Any:
        """The same with another rule of learning."""
        return dataclasses.replace(self, learning=rule)

    @abstractmethod
    def suitable(self, state: Any) -> int:
        """How many rows such a state is best kept in."""

    def limit(self, state: Any) -> int | None:
        """How many rows a state may have."""
        return self.suitable(state) if isinstance(self.keep, str) else self.keep

    @property
    def tolerance(self) -> float:
        """The gain of the bound, in nats, below which an E step ends."""
        return self.e_tolerance

    def predict(
        self, state: Any, x: Inputs, channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters f of a channel at each input."""
        return _of_channel(state, x, channel, with_weights=self.weight_uncertainty)

    def outlook(
        self, state: Any, channel: int, x: Inputs
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """As `predict`, without what data leave open about mixing weights, as rows are scored."""
        return _of_channel(state, x, channel, with_weights=False)

    def predict_joint(
        self, state: Any, x: Inputs, channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """q(f) of several channels at all inputs together.

        Returns:
            Mean and covariance of R numbers: channel after channel, input after input, latent
            parameter after latent parameter.
        """
        if not len(x):
            return np.zeros(0), np.zeros((0, 0))
        mean, covariance = state.joint([unobserved(state.plain, x, d) for d in channels])
        if self.weight_uncertainty:
            latents, _ = state.latents(x)
            own = [state.open_weights[channel] for channel in channels]
            covariance = covariance + block_diag(*(spread_of_weights(latents, w) for w in own))
        return mean, covariance

    def components(self, state: Any, x: Inputs, composition: Composition) -> Contributions:
        """Mean and covariance of the components of a channel at each input."""
        open_weights = state.open_weights[composition.channel] if self.weight_uncertainty else None
        parts = state.parts(x, composition)
        return contributions(state.plain, composition, x, parts, open_weights)

    def latent_means(self, state: Any, x: Inputs) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""
        return state.latents(x)[0]

    def scored(self, state: Any, rows: Rows) -> Scored:
        """The scores of each row, nothing learned."""
        batch = state.model.batch(rows)
        return scored(state.plain, batch, state.marginals(batch))

    def alternated(self, steps: Steps, start: Any, rule: VEM | None) -> tuple[Any, Fit, int, int]:
        """E and M steps in turn; those after the first M step only follow sites that have moved."""
        each = [] if rule is None else [rule.evaluations] * rule.rounds
        each[1:] = [min(most, _FOLLOWING) for most in each[1:]]
        return alternated(steps, start, start.first_sites(), each, start.kept.size)


def faded(kept: Kept, part: float) -> tuple[Kept, np.ndarray]:
    """Rows with that part of their say, and which are left: those with next to no say are gone."""
    scaled = kept.scaled(part)
    stays = scaled.count > _FADED
    return scaled.take(stays), stays


def _of_channel(
    state: StateOnRows, x: Inputs, channel: int, *, with_weights: bool
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """Mean and covariance of the latent parameters of a channel at each input."""
    latents = state.plain.channels[channel].likelihood.latents
    mean, covariance = np.empty((len(x), latents)), np.empty((len(x), latents, latents))
    for begin in range(0, len(x), _TOGETHER):
        own = slice(begin, begin + _TOGETHER)
        found = state.marginals(unobserved(state.plain, x[own], channel))
        mean[own], covariance[own] = found.mean.reshape(-1, latents), found.covariance[0]
    if with_weights and len(x) and (left := state.open_weights[channel]).any():
        known, _ = state.latents(x)
        covariance += np.einsum("nq,jqkr,nr->njk", known, left, known)
    return mean, covariance
