"""From what the user asked for, and the first data, to a state; and back to names and numbers."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Float, PyTree
from tinygp.kernels import Kernel

from streamgp import kernels, scaling
from streamgp.data import inducing_bucket
from streamgp.data.axes import Axis, input_names
from streamgp.errors import ConfigurationError, problem
from streamgp.generative import Channel, Generative
from streamgp.inference import memory, noise
from streamgp.inference.conditioning import Inducing
from streamgp.inference.sites import Site
from streamgp.learner import Learner, State
from streamgp.likelihoods import Likelihood
from streamgp.parameters import Parameter, Real, fixed

_MOST_DEFAULT_LATENTS = 3


def default_latents(channels: Mapping[str, Likelihood]) -> int:
    """One latent function a latent parameter of the channels, up to a few."""
    return min(sum(c.latents for c in channels.values()), _MOST_DEFAULT_LATENTS)


@dataclasses.dataclass
class Setup:
    """The user's specification of a model, from which states are made."""

    channels: dict[str, Likelihood]
    latents: int | Sequence[Kernel | tuple[Kernel, int]] | None
    mixing: Mapping[str, Parameter]
    seed: int
    scale: scaling.Scale = True

    def __post_init__(self) -> None:
        if not self.channels:
            raise ConfigurationError(problem("at least one channel", "none", "Name one."))
        for name, likelihood in self.channels.items():
            _check_channel(name, likelihood)
        scaling.check(self.scale, self.channels)
        parameters = sum(likelihood.latents for likelihood in self.channels.values())
        if self.latents is None:
            self.latents = default_latents(self.channels)
        entries = [kernels.RBF()] * self.latents if isinstance(self.latents, int) else self.latents
        pairs = [entry if isinstance(entry, tuple) else (entry, 1) for entry in entries]
        for kernel, _ in pairs:
            if not isinstance(kernel, Kernel):
                raise ConfigurationError(
                    problem("kernels for the latents", repr(kernel), "Pass instances: `RBF()`.")
                )
        if not pairs:
            raise ConfigurationError(problem("at least one latent function", "none", "Add one."))
        self._kernels = tuple(kernel for kernel, _ in pairs)
        self._draws = tuple(int(draws) for _, draws in pairs)
        for name in self.mixing:
            if name not in self.channels:
                raise ConfigurationError(
                    problem(
                        f"mixing weights of channels among {list(self.channels)}",
                        repr(name),
                        "Check the name.",
                    )
                )
            self._check_weights(name, self.channels[name], self.mixing[name])
        # One channel with one latent parameter on one latent function: its weight is one and the
        # kernel's variance is learned. Otherwise kernels have unit variance and weights do it.
        self.plain = parameters == 1 and sum(self._draws) == 1 and not self.mixing

    # -- states --------------------------------------------------------------------------------

    def initial(
        self, learner: Learner, x: Float[np.ndarray, "N P"], first: Mapping[str, np.ndarray]
    ) -> State:
        """The state before any data, on the scale of the first batch."""
        model = self._generative(x, next(iter(first.values())))
        empty = tuple(np.zeros((0, x.shape[1])) for _ in range(sum(self._draws)))
        return learner.init(_arrays(model), inducing(empty))

    def prototype(self, width: int) -> Generative:
        """A model of the structure and the shapes that all of this setup's have."""
        return self._generative(np.zeros((1, width)), np.zeros(0))

    def _generative(self, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " _"]) -> Generative:
        return Generative(
            kernels=self._started(x, y),
            channels=tuple(
                self._channel(i, name, likelihood, np.zeros(0))
                for i, (name, likelihood) in enumerate(self.channels.items())
            ),
            origin=fixed(scaling.of_inputs(self.scale, x)[0]),
            draws=self._draws,
        )

    def rescaled(
        self, model: Generative, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " _"]
    ) -> Generative:
        """The model with kernels started anew, once inputs have a spread to start from."""
        return eqx.tree_at(lambda m: m.kernels, model, _arrays(self._started(x, y)))

    def _started(
        self, x: Float[np.ndarray, "N P"], y: Float[np.ndarray, " _"]
    ) -> tuple[Kernel, ...]:
        variance = None
        if self.plain:
            name, likelihood = next(iter(self.channels.items()))  # others may have been added since
            _, _, scale = scaling.of_channel(self.scale, name, likelihood, y)
            variance = float(scale[0] ** 2)
        _, spread = scaling.of_inputs(self.scale, x)
        return tuple(kernels.start(k, spread, variance) for k in self._kernels)

    def introduce(self, state: State, first: Mapping[str, np.ndarray]) -> State:
        """Channels with their first data take their scale from it. No site depends on it yet."""
        channels = list(state.model.channels)
        for index, (name, likelihood) in enumerate(self.channels.items()):
            if name in first:
                channels[index] = self._channel(index, name, likelihood, first[name])
        model = eqx.tree_at(lambda m: m.channels, state.model, _arrays(tuple(channels)))
        return eqx.tree_at(lambda s: s.model, state, model)

    def add(
        self,
        state: State | None,
        name: str,
        likelihood: Likelihood,
        weights: Parameter | None,
    ) -> State | None:
        """A further channel, with no memory yet."""
        _check_channel(name, likelihood)
        if weights is not None:
            self._check_weights(name, likelihood, weights)
            self.mixing = {**self.mixing, name: weights}
        self.channels[name] = likelihood
        if state is None:
            self.plain = False
            return None
        channel = self._channel(len(self.channels) - 1, name, likelihood, np.zeros(0), plain=False)
        remembered = state.memory
        if noise.is_exact(state.model):  # so far known exactly, beside the site
            plain = paramax.unwrap(state.model)
            own = noise.expanded(plain, state.site, state.count, state.energy)
            remembered += memory.joined(memory.blank(state.model.kernels), own)
        channels = (*state.model.channels, _arrays(channel))
        model = eqx.tree_at(lambda m: m.channels, state.model, channels)
        more = memory.as_vector(model).size - len(remembered.gradient)
        widened = jax.tree.map(lambda leaf: jnp.pad(leaf, (0, more)), remembered)
        return State(model, state.inducing, state.site, widened, state.count, state.energy)

    def _check_weights(self, name: str, likelihood: Likelihood, weights: Parameter) -> None:
        shape = np.shape(paramax.unwrap(weights))
        wanted = (likelihood.latents, sum(self._draws))
        if shape != wanted:
            raise ConfigurationError(
                problem(
                    f"mixing weights of channel {name!r} of shape {wanted}",
                    f"shape {shape}",
                    "Give a row a latent parameter and a column a latent function.",
                )
            )

    def _channel(
        self,
        index: int,
        name: str,
        likelihood: Likelihood,
        y: np.ndarray,
        plain: bool | None = None,
    ) -> Channel:
        started, offset, scale = scaling.of_channel(self.scale, name, likelihood, y)
        plain = self.plain and index == 0 if plain is None else plain
        weights: Parameter
        if plain:
            weights, scale = fixed(np.ones((1, 1))), np.ones(1)
        elif name in self.mixing:  # given in the units of f
            given = self.mixing[name]
            weights = given if isinstance(given, paramax.AbstractUnwrappable) else Real(given)
            scale = np.ones(likelihood.latents)
        else:
            weights = Real(self._random_weights(index, likelihood.latents))
        return Channel(started, weights, fixed(offset), fixed(scale))

    def _random_weights(self, index: int, count: int) -> Float[np.ndarray, "J Q"]:
        """Each latent parameter leans on a latent function of its own, and a little on all.

        Channels so start nearly independent, and the data couple them. From weights of equal
        size the first channel to arrive would tie all latent functions to itself.
        """
        latents = sum(self._draws)
        before = sum(c.latents for c in list(self.channels.values())[:index])
        generator = np.random.default_rng([self.seed, index])
        weights = 0.2 * generator.normal(size=(count, latents))
        weights[np.arange(count), (before + np.arange(count)) % latents] += 0.8
        return weights


def _check_channel(name: str, likelihood: Any) -> None:
    if not isinstance(likelihood, Likelihood):
        raise ConfigurationError(
            problem(
                f"a likelihood for channel {name!r}",
                repr(likelihood),
                "Pass an instance, such as `Gaussian()`.",
            )
        )


def _arrays(tree: PyTree) -> PyTree:
    """Every number as a JAX array of double precision."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float) if eqx.is_inexact_array_like(leaf) else leaf, tree
    )


# -- inducing points ---------------------------------------------------------------------------


def inducing(points: Sequence[Float[np.ndarray, "_ P"]]) -> Inducing:
    """Sets of points, one a latent, in padded slots."""
    slots = inducing_bucket(max(len(p) for p in points))
    padded = np.stack([np.pad(p, [(0, slots - len(p)), (0, 0)]) for p in points])
    mask = np.stack([np.arange(slots) < len(p) for p in points])
    return Inducing(jnp.asarray(padded), jnp.asarray(mask))


def extends(old: Sequence[np.ndarray], new: Sequence[np.ndarray]) -> bool:
    """Whether each latent's new points are its old ones, in order, and perhaps more."""
    return all(np.array_equal(a, b[: len(a)]) for a, b in zip(old, new, strict=True))


def extended(state: State, new: Inducing) -> State:
    """The state with further points in slots that were empty. Nothing is lost or computed.

    A Cholesky factor's leading block is that of the leading points, so the whitened values of
    the old points, and with them the site, are the same numbers as before.
    """
    latents, slots = state.inducing.mask.shape
    room = new.mask.shape[1]
    if room == slots:
        return State(state.model, new, state.site, state.memory, state.count, state.energy)
    joint = state.site.linear.shape[0] != latents or latents == 1
    linear = _widen(state.site.linear.reshape(latents, slots), room, axes=(1,))
    shape = (latents, slots, latents, slots) if joint else (latents, slots, slots)
    axes = (1, 3) if joint else (1, 2)
    precision = _widen(state.site.precision.reshape(shape), room, axes)
    blocks, size = (1, latents * room) if joint else (latents, room)
    site = Site(linear.reshape(blocks, size), precision.reshape(blocks, size, size))
    return State(state.model, new, site, state.memory, state.count, state.energy)


def _widen(array: jnp.ndarray, size: int, axes: tuple[int, ...]) -> jnp.ndarray:
    widths = [(0, size - n) if axis in axes else (0, 0) for axis, n in enumerate(array.shape)]
    return jnp.pad(array, widths)


# -- names and numbers -------------------------------------------------------------------------


def describe(model: Generative, names: Sequence[str], axes: Sequence[Axis] = ()) -> dict[str, Any]:
    """Every hyperparameter by name, in the user's units; and the unit of each input."""
    plain = paramax.unwrap(model)
    return {
        "inputs": dict(zip(input_names(axes), map(str, axes), strict=True)),
        "latents": [_numbers_of(kernel) for kernel in plain.kernels],
        "channels": {
            name: {
                "weights": np.asarray(channel.scale[:, None] * channel.weights),
                **_numbers_of(channel.likelihood),
            }
            for name, channel in zip(names, plain.channels, strict=True)
        },
    }


def _numbers_of(module: eqx.Module) -> dict[str, Any]:
    """The numbers in a module, nested as the module is."""
    numbers: dict[str, Any] = {"kind": type(module).__name__}
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, eqx.Module):
            numbers[field.name] = _numbers_of(value)
        elif eqx.is_array_like(value):
            numbers[field.name] = (
                np.asarray(value).item() if np.size(value) == 1 else np.asarray(value)
            )
    return numbers
