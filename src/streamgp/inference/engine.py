"""What every engine has in common: a state, and a learner of states.

An engine is a way to keep what is known. Two keep rows: over time, with a filter (`RowState`,
`RowLearner`), and over any inputs (`DenseState`, `DenseLearner`). The third keeps no rows, but
sites at inducing points (`State`, `Learner`). Everything above this folder sees these protocols.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference.components import Contributions
from streamgp.inference.pace import Pace
from streamgp.inference.scoring import Scored
from streamgp.inference.vem import VEM, Info
from streamgp.model.composition import Composition
from streamgp.model.multitask import MultiTaskGP

Points = tuple[Float[np.ndarray, "_ P"], ...]


class AnyState(Protocol):
    """All that is kept of the past."""

    @property
    def model(self) -> MultiTaskGP:
        """The hyperparameters, still wrapped: constrained, with priors."""

    @property
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""

    @property
    def kept_rows(self) -> int:
        """How many rows of the past are kept; none at inducing points."""

    @property
    def kept_bytes(self) -> int:
        """How many bytes they take."""

    @property
    def heard(self) -> Float[np.ndarray, " D"]:
        """The observations of each channel that it stands for, faded ones in part."""

    @property
    def count(self) -> float:
        """The observations that it stands for, faded ones in part."""

    @property
    def points(self) -> Points:
        """The inducing points of each latent function."""

    @property
    def explored(self) -> Float[np.ndarray, "_ P"]:
        """Where data were, as the inducing points tell it."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many inducing points each latent function has."""

    @property
    def open_variance(self) -> Float[np.ndarray, " Q"]:
        """The part of each latent function's variance at past rows that its points leave open."""

    @property
    def mean_weights(self) -> Float[np.ndarray, "O B"]:
        """E_q[β]: the expected weights of each latent parameter's mean functions."""

    def is_finite(self, before: Any = None) -> bool:
        """Whether all numbers are finite, those that it shares with another state apart."""

    def replace(self, **changes: Any) -> Any:
        """A copy with some fields changed, by name."""

    def with_channel(self, model: MultiTaskGP, latents: int) -> Any:
        """The same with a further channel, the last of that model, of which nothing is known."""


class AnyLearner(Protocol):
    """How states begin, learn and are read. See `Learner` for what each method does."""

    @property
    def learning(self) -> VEM | None:
        """How hyperparameters are learned; None leaves them alone."""

    @property
    def on_rows(self) -> bool:
        """Whether rows are kept, so that hyperparameters are learned from all of them."""

    @property
    def pace(self) -> Pace:
        """How much it takes at a time, and how often it learns."""

    @property
    def least_noise(self) -> float:
        """The least noise that the arithmetic can take, as a part of the spread of data."""

    def with_rule(self, rule: VEM | None) -> Any:
        """The same with another rule of learning."""

    def begin(self, model: MultiTaskGP, columns: int) -> Any:
        """The state before any data, for inputs of so many columns."""

    def tempered(self, state: Any, part: float) -> Any:
        """The state with that part of all it was told."""

    def step(
        self,
        state: Any,
        rows: Rows,
        start: MultiTaskGP | None = None,
        *,
        learn: bool = True,
    ) -> tuple[Any, Info]:
        """Fold rows in; with `learn`, hyperparameters as well."""

    def trying(self, state: Any, rows: Rows, start: MultiTaskGP) -> tuple[MultiTaskGP, float]:
        """The hyperparameters that a step learns from there, and its bound; nothing is kept."""

    def filter_scored(self, state: Any, rows: Rows) -> tuple[Any, Scored]:
        """Fold rows in one by one, in order, at fixed hyperparameters."""

    def predict(
        self, state: Any, x: Float[np.ndarray, "N P"], channel: int
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """Mean and covariance of the latent parameters f of a channel at each input."""

    def outlook(
        self, state: Any, channel: int, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
        """As `predict`, without what data leave open about mixing weights, as rows are scored."""

    def predict_joint(
        self, state: Any, x: Float[np.ndarray, "N P"], channels: Sequence[int]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """q(f) of several channels at all inputs together."""

    def components(
        self, state: Any, x: Float[np.ndarray, "N P"], composition: Composition
    ) -> Contributions:
        """Mean and covariance of the components of a channel at each input."""

    def latent_means(self, state: Any, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N Q"]:
        """E_q[u] of each latent function."""

    def told(self, state: Any, model: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
        """What all data say of hyperparameters, up to a constant, and its gradient; no priors."""

    def scored(self, state: Any, rows: Rows) -> Scored:
        """The scores of each row, nothing learned."""
