"""Specification: the model that the user asked for, before and apart from any data.

It never changes. A further channel makes a new specification.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from streamgp import kernels
from streamgp.data.axes import Axis
from streamgp.errors import ConfigurationError, problem
from streamgp.kernels import Kernel
from streamgp.kernels.composite import as_kernel, is_kernel, is_quasiseparable
from streamgp.likelihoods import Likelihood
from streamgp.model import initial_scales, means
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.parameters import Node, Parameter, Positive, Real, fixed

_MOST_DEFAULT_LATENTS = 3

Latents: TypeAlias = int | Kernel | Sequence[Any]  # of kernels, or of (kernel, how many)


def default_latents(channels: Mapping[str, Likelihood]) -> int:
    """One latent function per latent parameter of the channels, up to a few."""
    return min(sum(c.latents for c in channels.values()), _MOST_DEFAULT_LATENTS)


@dataclasses.dataclass(frozen=True)
class Specification:
    """What a model consists of. It is the only source of the channels' order.

    Attributes:
        channels: The likelihood of each channel, by name.
        latents: How many latent functions there are, or their kernels; None for the default.
        mixing: Mixing weights to start from, by channel.
        seed: Of the random start of the other mixing weights.
        scale: Where scales come from; see `ContinualGP`.
        plain: Whether the first channel has weight one and the kernel's variance is learned. That
            is so for one channel with one latent parameter on one latent function. Otherwise
            kernels have unit variance and the weights carry the scale. None: found out from the
            rest.
        mean: The mean functions of every channel, or of some by name; see `ContinualGP`.
        over_time: Whether a single input is time to latent functions without a kernel of their
            own (`kernels.over_time`). Otherwise these are smooth (`RBF`).
        seasons: Further mean functions of every channel.
    """

    channels: Mapping[str, Likelihood]
    latents: Latents | None = None
    mixing: Mapping[str, Parameter] = dataclasses.field(default_factory=dict)
    seed: int = 0
    scale: initial_scales.Scale = True
    plain: bool | None = None
    mean: means.Means = means.Constant()  # noqa: RUF009 (frozen)
    seasons: tuple[means.Seasonal, ...] = ()
    over_time: bool = False

    def __post_init__(self) -> None:
        if not self.channels:
            raise ConfigurationError(problem("at least one channel", "none", "Name one."))
        for name, likelihood in self.channels.items():
            _check_likelihood(name, likelihood)
        initial_scales.check(self.scale, self.channels)
        means.check(self.mean, self.channels, self.seasons)
        if self.latents is None:
            object.__setattr__(self, "latents", default_latents(self.channels))
        object.__setattr__(self, "latents", _with_own_states(self.latents))
        _check_kernels(self._kernels_and_draws())
        for name, weights in self.mixing.items():
            self._check_weights(name, weights)
        if self.plain is None:
            parameters = sum(likelihood.latents for likelihood in self.channels.values())
            alone = parameters == 1 and sum(self.draws) == 1 and not self.mixing
            object.__setattr__(self, "plain", alone)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the channels, in order."""
        return tuple(self.channels)

    @property
    def draws(self) -> tuple[int, ...]:
        """How many latent functions each kernel has."""
        return tuple(int(draws) for _, draws in self._kernels_and_draws())

    @functools.cached_property
    def all_seasons(self) -> tuple[means.Seasonal, ...]:
        """The seasons of all channels, those in their means among them."""
        return means.all_seasons(self.mean, self.seasons)

    def _kernels_and_draws(self, columns: int = 1) -> list[tuple[Kernel, int]]:
        """Kernels as they were given, and the usual ones for inputs of so many columns."""
        latents = self.latents
        if isinstance(latents, int | np.integer):
            is_time = self.over_time and columns == 1
            latents = [kernels.over_time() if is_time else kernels.RBF()] * int(latents)
        elif not isinstance(latents, Sequence):
            latents = [latents]
        return [entry if isinstance(entry, tuple) else (entry, 1) for entry in latents]

    def with_channel(
        self, name: str, likelihood: Likelihood, weights: Parameter | None, *, begun: bool
    ) -> "Specification":
        """A specification with one more channel.

        Args:
            name: Of the new channel.
            likelihood: Of the new channel.
            weights: Mixing weights (J, Q) to start from, or None.
            begun: Whether the model has data. If so the first channel stays as it is.
        """
        if name in self.channels:
            raise ConfigurationError(
                problem("a new channel name", f"{name!r}, which exists", "Choose another name.")
            )
        return dataclasses.replace(
            self,
            channels={**self.channels, name: likelihood},
            mixing=self.mixing if weights is None else {**self.mixing, name: weights},
            plain=self.plain and begun,
        )

    # -- models --------------------------------------------------------------------------------

    def model(
        self,
        x: Float[np.ndarray, "N P"],
        y: np.ndarray,
        columns: Sequence[str] = (),
        axes: Sequence[Axis] = (),
    ) -> MultiTaskGP:
        """The model before any data, with inputs and a plain channel on the scale of the first.

        Args:
            x: The first inputs.
            y: The first observations of the first channel that has any.
            columns: The names of the input columns, for kernels of some columns.
            axes: What each input column is, for mean functions; numbers, if there are none.
        """
        return MultiTaskGP(
            kernels=self.kernels(x, y, columns),
            channels=tuple(
                self.channel(name, no_observations(c), x, axes) for name, c in self.channels.items()
            ),
            origin=fixed(initial_scales.of_inputs(self.scale, x)[0]),
            draws=self.draws,
        )

    def prototype(self, columns: Sequence[str], axes: Sequence[Axis] = ()) -> MultiTaskGP:
        """A model of the structure and the shapes that all models of this specification have.

        Args:
            columns: The names of the input columns.
            axes: What each input column is; numbers, if there are none.
        """
        first = next(iter(self.channels.values()))
        return self.model(np.zeros((1, len(columns))), no_observations(first), columns, axes)

    def kernels(
        self, x: Float[np.ndarray, "N P"], y: np.ndarray, columns: Sequence[str] = ()
    ) -> tuple[Kernel, ...]:
        """Kernels as they start from these inputs and first observations."""
        variance = None
        if self.plain:
            name, likelihood = next(iter(self.channels.items()))  # others may have been added since
            _, _, scale = initial_scales.of_channel(self.scale, name, likelihood, y)
            variance = float(scale[0] ** 2)
        _, spread = initial_scales.of_inputs(self.scale, x)
        return tuple(
            kernels.start(as_kernel(kernel).resolved(columns), spread, variance)
            for kernel, _ in self._kernels_and_draws(x.shape[1])
        )

    def channel(
        self,
        name: str,
        y: np.ndarray,
        x: Float[np.ndarray, "N P"] | None = None,
        axes: Sequence[Axis] = (),
    ) -> Channel:
        """A channel as it starts from its first observations, perhaps none.

        Args:
            name: Of the channel.
            y: Its first observations.
            x: The ground that is known, for mean functions; without it they stay as they were
                given.
            axes: What each input column is; numbers, if there are none.
        """
        likelihood = self.channels[name]
        started, offset, scale = initial_scales.of_channel(self.scale, name, likelihood, y)
        functions = means.of_channel(self.mean, name, self.seasons)
        if x is not None:
            functions = functions.started(x, axes or (Axis(),) * x.shape[1])
        spread = _spread(functions, scale, likelihood.offset_spread * scale)
        weights: Parameter
        size: Parameter = Positive(scale)
        if self.plain and name == self.names[0]:
            weights, size = fixed(np.ones((1, 1))), fixed(np.ones(1))
        elif name in self.mixing:  # given in the units of f
            given = self.mixing[name]
            weights = given if isinstance(given, Node) else Real(given)
            size = fixed(np.ones(likelihood.latents))
        else:
            weights = Real(self.random_weights(name))
        return Channel(started, weights, fixed(offset), size, functions, fixed(spread))

    def random_weights(self, name: str, turn: int = 0) -> Float[np.ndarray, "J Q"]:
        """Each latent parameter leans on a latent function of its own, and a little on all.

        Channels so start nearly independent, and the data couple them. From weights of equal
        size the first channel to arrive would tie all latent functions to itself.

        Args:
            name: Of the channel.
            turn: Gives other weights each time.
        """
        latents, index = sum(self.draws), self.names.index(name)
        count = self.channels[name].latents
        before = sum(c.latents for c in list(self.channels.values())[:index])
        generator = np.random.default_rng([self.seed, index, turn] if turn else [self.seed, index])
        weights = 0.2 * generator.normal(size=(count, latents))
        weights[np.arange(count), (before + np.arange(count)) % latents] += 0.8
        return weights

    def _check_weights(self, name: str, weights: Parameter) -> None:
        if name not in self.channels:
            raise ConfigurationError(
                problem(
                    f"mixing weights of channels among {list(self.channels)}",
                    repr(name),
                    "Check the name.",
                )
            )
        shape = np.shape(weights.value if isinstance(weights, Node) else weights)
        wanted = (self.channels[name].latents, sum(self.draws))
        if shape != wanted:
            raise ConfigurationError(
                problem(
                    f"mixing weights of channel {name!r} of shape {wanted}",
                    f"shape {shape}",
                    "Give one row per latent parameter and one column per latent function.",
                )
            )


def _spread(
    functions: means.Mean, scale: Float[np.ndarray, " J"], broad: Float[np.ndarray, " J"]
) -> Float[np.ndarray, "J B"]:
    """The prior spread of each mean function's weight for each latent parameter."""
    columns = [_numbers(spread, scale, broad) for spread in functions.spreads]
    return np.array(columns, float).reshape(functions.size, len(scale)).T.copy()


def _numbers(
    spread: means.Spread, scale: Float[np.ndarray, " J"], broad: Float[np.ndarray, " J"]
) -> Float[np.ndarray, " J"]:
    if spread is None:
        return broad
    return (
        spread.factor * scale if isinstance(spread, means.OfScale) else np.full(len(scale), spread)
    )


def _check_likelihood(name: str, likelihood: Any) -> None:
    if not isinstance(likelihood, Likelihood):
        raise ConfigurationError(
            problem(
                f"a likelihood for channel {name!r}",
                repr(likelihood),
                "Pass an instance, such as `Gaussian()`, or a dictionary of them by name.",
            )
        )


def _with_own_states(latents: Any) -> Any:
    """Quasiseparable kernels of tinygp as the kernels of this package that they are."""
    if isinstance(latents, list | tuple):
        return type(latents)(map(_with_own_states, latents))
    return as_kernel(latents) if is_quasiseparable(latents) else latents


def _check_kernels(pairs: Sequence[tuple[Any, int]]) -> None:
    if not pairs:
        raise ConfigurationError(problem("at least one latent function", "none", "Add one."))
    for kernel, _ in pairs:
        if not is_kernel(kernel):
            raise ConfigurationError(
                problem("kernels for the latents", repr(kernel), "Pass instances: `RBF()`.")
            )


def no_observations(likelihood: Likelihood) -> np.ndarray:
    """Observations of a channel that has none yet."""
    width = likelihood.observation_dim
    return np.zeros(0) if width == 1 else np.zeros((0, width))
