"""Population: what the hyperparameters of a fleet's models have in common.

Of hyperparameters θ, in log units, the data of key k say

    g_kᵀ(θ − θ_k) − ½(θ − θ_k)ᵀH_k(θ − θ_k)

around its own θ_k. Across keys they are taken as normal, N(μ, D⁻¹) with D diagonal. EM finds μ and
D: given these, those of key k are N(m_k, (H_k + D)⁻¹), m_k = θ_k + (H_k + D)⁻¹(g_k + D(μ − θ_k)).
So keys count by how much their data say, and what data leave open is no difference between keys.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.inference.engine import AnyLearner, AnyState
from streamgp.kernels import Kernel
from streamgp.likelihoods import Gaussian, Likelihood, StudentT
from streamgp.model.means import Constant
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.numerics.differences import expanded, with_right_sign
from streamgp.parameters import (
    Positive,
    Real,
    believed,
    free_size,
    free_vector,
    nodes_of,
    prior_of,
    with_free,
)
from streamgp.registry import storable

_ROUNDS = 100  # of EM
_LEAST = 0.05  # spread of a parameter across keys: a key may differ from all others before it
_FURTHEST = 3.0  # that a key's own optimum is believed to be from where learning left it


class Said(NamedTuple):
    """What a key's data say of hyperparameters around its own."""

    theta: Float[np.ndarray, " T"]
    gradient: Float[np.ndarray, " T"]
    precision: Float[np.ndarray, "T T"]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """Kernels and likelihoods that new keys start from, with the spread between keys as priors.

    Attributes:
        keys: How many keys it was learned from.
        kernels: With the pooled values, and their spreads as priors.
        likelihoods: The same by channel, of those whose parameters are all positive numbers.
        levels: Centre and spread of the levels of keys, of channels with real values.
        draws: How many latent functions each kernel has.
    """

    keys: int
    kernels: tuple[Kernel, ...]
    likelihoods: Mapping[str, Likelihood]
    levels: Mapping[str, tuple[float, float]]
    draws: tuple[int, ...]

    def specification(self, asked: Specification) -> Specification:
        """What was asked for, of models that start from here."""
        scale = dict(asked.scale) if isinstance(asked.scale, Mapping) else {}
        for name, (centre, spread) in self.levels.items():
            width = float(asked.channels[name].offset_spread[0])
            scale.setdefault(name, (centre, spread / width))
        return dataclasses.replace(
            asked,
            channels={**asked.channels, **self.likelihoods},
            latents=tuple(zip(self.kernels, self.draws, strict=True)),
            scale=scale if scale and asked.scale is not False else asked.scale,
        )


def said_of(learner: AnyLearner, state: AnyState) -> Said:
    """What the data of a key say of its pooled hyperparameters, the others held."""
    model, pooled = state.model, is_pooled(state.model)
    whole = free_vector(model)

    def gradient(theta: Float[np.ndarray, " t"]) -> Float[np.ndarray, " t"]:
        there = whole.copy()
        there[pooled] = theta
        return learner.told(state, with_free(model, there))[1][pooled]

    slope, hessian = expanded(gradient, whole[pooled])
    return Said(whole[pooled], slope, with_right_sign(-hessian))


def pooled_of(said: Sequence[Said]) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, " T"]]:
    """μ, and the spread of each parameter between keys, by EM."""
    theta = np.array([own.theta for own in said])
    slope = np.array([own.gradient for own in said])
    precision = np.array([own.precision for own in said])
    centre, variance = np.median(theta, axis=0), np.var(theta, axis=0) + _LEAST**2
    for _ in range(_ROUNDS):
        covariance = np.linalg.inv(precision + np.diag(1.0 / variance))
        pull = slope + (centre - theta) / variance
        step = np.einsum("kij,kj->ki", covariance, pull)
        mean = theta + np.clip(step, -_FURTHEST, _FURTHEST)
        centre = mean.mean(axis=0)
        left = np.diagonal(covariance, axis1=1, axis2=2).mean(axis=0)
        variance = np.maximum(np.var(mean, axis=0) + left, _LEAST**2)
    return centre, np.sqrt(variance)


def population(
    learner: AnyLearner, states: Sequence[AnyState], names: Sequence[str]
) -> Population | None:
    """What some keys have in common; None if that is not finite.

    Args:
        learner: The functional core of all of them.
        states: Of keys that have learned hyperparameters.
        names: Of the channels.
    """
    said = [own for own in (said_of(learner, state) for state in states) if _is_finite(own)]
    if len(said) < 2:
        return None
    centre, spread = pooled_of(said)
    if not np.all(np.isfinite(centre + spread)):
        return None
    # What is not pooled (signs, for example) is that of the key nearest to the centre.
    nearest = min(states, key=lambda state: _distance(state, centre, spread))
    model = nearest.model
    values, widths = free_vector(model), prior_of(model)[1]
    pooled = is_pooled(model)
    values[pooled], widths[pooled] = centre, np.minimum(spread, widths[pooled])
    moved = believed(model, values, widths)
    levels = {
        name: _level([_level_of(state, d) for state in states])
        for d, name in enumerate(names)
        if _has_level(model, d)
    }
    likelihoods = {
        name: channel.likelihood
        for name, channel in zip(names, moved.channels, strict=True)
        if all(not isinstance(node, Real) for node in nodes_of(channel.likelihood))
    }
    return Population(len(said), moved.kernels, likelihoods, levels, model.draws)


def is_pooled(model: MultiTaskGP) -> Bool[np.ndarray, " T"]:
    """Which free parameters are pooled: positive ones of kernels and likelihoods."""
    found = []
    for node in nodes_of(model.kernels):
        found += [isinstance(node, Positive)] * node.free.size
    for channel in model.channels:
        own = [
            flag
            for node in nodes_of(channel.likelihood)
            for flag in [isinstance(node, Positive)] * node.free.size
        ]
        found += own + [False] * (free_size(channel) - len(own))
    return np.array(found, bool)


def _is_finite(said: Said) -> bool:
    return bool(np.isfinite(said.gradient).all() and np.isfinite(said.precision).all())


def _distance(
    state: AnyState, centre: Float[np.ndarray, " T"], spread: Float[np.ndarray, " T"]
) -> float:
    own = free_vector(state.model)[is_pooled(state.model)]
    return float(np.sum(((own - centre) / spread) ** 2))


# -- levels ----------------------------------------------------------------------------------------


def _has_level(model: MultiTaskGP, channel: int) -> bool:
    """Whether a channel has real values and a level, and nothing else as its mean."""
    own = model.channels[channel]
    return isinstance(own.likelihood, Gaussian | StudentT) and type(own.mean) is Constant


def _level_of(state: AnyState, channel: int) -> float:
    first = state.plain.outputs.first[channel]
    return float(state.plain.channels[channel].offset[0] + state.mean_weights[first, 0])


def _level(levels: Sequence[float]) -> tuple[float, float]:
    spread = float(np.std(levels))
    return float(np.mean(levels)), max(spread, 1e-9 * abs(float(np.mean(levels))), 1e-300)
