"""Latent functions at inducing points, and what observations say of them.

Everything is whitened: with K(Z, Z) = LLᵀ, the values v = L⁻¹u are standard normal a priori. At
inputs x a function is Vᵀv plus what v leaves open, V = L⁻¹K(Z, x). A bar over a name is the
derivative of a bound by it; the code calls it `by_name`.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference.gradients import summed
from streamgp.kernels import Kernel
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.numerics.linalg import (
    NUGGET,
    TINY,
    cholesky,
    cholesky_adjoint,
    solve_lower,
    with_nugget,
)

Points = Float[np.ndarray, "_M P"]


class Seen(NamedTuple):
    """What inducing values tell of a function at some inputs.

    Attributes:
        x: The inputs, less the origin.
        cross: K(Z, x).
        values: V.
        left: The variance that they leave open.
    """

    x: Float[np.ndarray, "N P"]
    cross: Float[np.ndarray, "M N"]
    values: Float[np.ndarray, "M N"]
    left: Float[np.ndarray, " N"]


class ByKernel(NamedTuple):
    """Derivatives by a kernel's parameters, and by the inducing points."""

    parameters: dict[str, Any]
    points: Points


@dataclasses.dataclass(frozen=True, eq=False)
class Function:
    """A latent function at its inducing points.

    Attributes:
        kernel: Its kernel, plain.
        origin: Where the kernel sees inputs from.
        points: Its inducing points.
        gram: K(Z, Z), without the nugget.
        chol: L, with it.
    """

    kernel: Kernel
    origin: Float[np.ndarray, " P"]
    points: Points
    gram: Float[np.ndarray, "M M"]
    chol: Float[np.ndarray, "M M"]

    @classmethod
    def of(cls, kernel: Kernel, origin: Float[np.ndarray, " P"], points: Points) -> "Function":
        """Factorise the prior."""
        gram = kernel.matrix(points - origin, points - origin)
        return cls(kernel, origin, points, gram, cholesky(with_nugget(gram)))

    def seen(self, x: Float[np.ndarray, "N P"]) -> Seen:
        """What the values at the points tell of inputs."""
        x = x - self.origin
        cross = self.kernel.matrix(self.points - self.origin, x)
        values = solve_lower(self.chol, cross)
        left = self.kernel.diagonal(x) - np.einsum("mn,mn->n", values, values)
        return Seen(x, cross, values, np.maximum(left, 0.0))

    def to(self, other: Points) -> Float[np.ndarray, "M _"]:
        """K(Z, Z') to other points; coinciding points share their nugget."""
        z = self.points - self.origin
        same = np.all(self.points[:, None] == other, axis=-1)
        nugget = NUGGET * self.kernel.diagonal(z) + TINY
        return self.kernel.matrix(z, other - self.origin) + same * nugget[:, None]

    def gradient(
        self,
        seen: Seen,
        by_values: Float[np.ndarray, "M N"],
        by_left: Float[np.ndarray, " N"],
        by_chol: Float[np.ndarray, "M M"] | float = 0.0,
    ) -> ByKernel:
        """Derivatives from those by V, by what is left open, and by L where it enters beside V."""
        by_left = np.where(seen.left > 0, by_left, 0.0)
        by_values = by_values - 2 * seen.values * by_left
        by_cross = solve_lower(self.chol, by_values, transpose=True)
        by_gram = cholesky_adjoint(self.chol, by_chol - by_cross @ seen.values.T)
        by_gram.flat[:: len(by_gram) + 1] *= 1 + NUGGET
        kernel, z = self.kernel, self.points - self.origin
        parameters = kernel.pullback(z, z, by_gram, self.gram)
        parameters = summed(parameters, kernel.pullback(z, seen.x, by_cross, seen.cross))
        parameters = summed(parameters, kernel.diagonal_pullback(seen.x, by_left))
        # Each point stands in a row and in a column of K(Z, Z), which is symmetric.
        by_points = 2 * kernel.input_gradient(z, z, by_gram, self.gram)
        by_points += kernel.input_gradient(z, seen.x, by_cross, seen.cross)
        return ByKernel(parameters, by_points)


def functions(model: MultiTaskGP, points: tuple[Points, ...]) -> tuple[Function, ...]:
    """The latent functions of a plain model."""
    pairs = zip(model.latent_kernels, points, strict=True)
    return tuple(Function.of(kernel, model.origin, z) for kernel, z in pairs)


def mixed(
    channel: Channel, mean: Float[np.ndarray, "Q N"], variance: Float[np.ndarray, "Q N"]
) -> tuple[Float[np.ndarray, "N J"], Float[np.ndarray, "N J J"]]:
    """Mean and covariance of a channel's latent parameters, from those of latent functions."""
    weights = channel.loadings
    covariance = np.einsum("jq,qn,kq->njk", weights, variance, weights)
    return channel.offset + mean.T @ weights.T, covariance


class Expected(NamedTuple):
    """E_q[log p(y | f)] of rows, and its derivatives.

    Attributes:
        value: Their sum.
        by_mean: By the mean of each latent function at each row.
        by_variance: By its variance there.
        channels: By the parameters of each channel; empty where it has no rows.
    """

    value: float
    by_mean: Float[np.ndarray, "Q N"]
    by_variance: Float[np.ndarray, "Q N"]
    channels: tuple[dict[str, Any], ...]


def expected(
    model: MultiTaskGP,
    rows: Rows,
    mean: Float[np.ndarray, "Q N"],
    variance: Float[np.ndarray, "Q N"],
    *,
    parameters: bool = True,
) -> Expected:
    """What rows are expected to say under marginals of the latent functions at them.

    Derivatives by parameters of likelihoods are left out if nobody asks for them.
    """
    value, by_mean, by_variance = 0.0, np.empty(mean.shape), np.empty(mean.shape)
    channels: list[dict[str, Any]] = [{"likelihood": {}} for _ in model.channels]
    for index in map(int, np.unique(rows.channel)):
        channel, own = model.channels[index], rows.channel == index
        likelihood, weights = channel.likelihood, channel.loadings
        g, v = mean[:, own], variance[:, own]
        y, f = rows.of(index, likelihood.observation_dim), mixed(channel, g, v)
        found = likelihood.expected(y, *f)
        value += float(np.sum(found.value))
        pulled = found.by_covariance @ weights  # N J Q
        by_mean[:, own] = weights.T @ found.by_mean.T
        by_variance[:, own] = np.einsum("jq,njq->qn", weights, pulled)
        channels[index] |= channel.by_loadings(
            found.by_mean.T @ g.T + 2 * np.einsum("njq,qn->jq", pulled, v)
        )
        if parameters:
            channels[index]["likelihood"] = likelihood.expected_parameter_gradient(y, *f)
    return Expected(value, by_mean, by_variance, tuple(channels))
