"""Covariance functions: tinygp kernels whose parameters are constrained, trainable and named.

Every kernel here *is* a tinygp kernel, so `+`, `*` and tinygp's transforms work; any tinygp
kernel of the user's is accepted beside them. Parameters left out start from the first batch:
lengthscales at the spread of each input (one each: ARD), the variance at that of the data.
Give a number to start elsewhere, or `streamgp.fixed(number)` to keep it there. All are in the
units of the user's inputs.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import tinygp
from jaxtyping import Array, Float
from tinygp.kernels import Kernel
from tinygp.kernels import base as tinygp_base
from tinygp.kernels import distance as tinygp_distance
from tinygp.kernels import stationary as tinygp_stationary
from tinygp.kernels.distance import Distance

from streamgp.parameters import Parameter, Positive, Real, fixed, positive
from streamgp.registry import register_foreign, storable

# tinygp's own, by the names that files have for them.
register_foreign(
    "tinygp",
    *(tinygp_base.Constant, tinygp_base.Custom, tinygp_base.DotProduct, tinygp_base.Polynomial),
    *(tinygp_base.Product, tinygp_base.Sum),
    *(tinygp_stationary.Cosine, tinygp_stationary.Exp, tinygp_stationary.ExpSineSquared),
    *(tinygp_stationary.ExpSquared, tinygp_stationary.Matern32, tinygp_stationary.Matern52),
    *(tinygp_stationary.RationalQuadratic, tinygp_distance.L1Distance, tinygp_distance.L2Distance),
)
register_foreign(
    "tinygp.transforms",
    *(tinygp.transforms.Cholesky, tinygp.transforms.Linear),
    *(tinygp.transforms.Subspace, tinygp.transforms.Transform),
)

# Lengthscales start well below the spread of the inputs: from there the bound leads to longer ones,
# whereas from a long start fast changes look like noise and stay so.
_SHORT_START = 0.25


class ScaledKernel(Kernel):
    """variance · shape(x / lengthscale, x' / lengthscale), for a unit kernel `shape` of tinygp."""

    lengthscale: Parameter = None
    variance: Parameter = None

    @abstractmethod
    def shape(self) -> Kernel:
        """The tinygp kernel of unit variance and unit lengthscale."""

    def evaluate(self, X1: Array, X2: Array) -> Array:  # noqa: N803 (tinygp's names)
        return self.variance * self.shape().evaluate(X1 / self.lengthscale, X2 / self.lengthscale)

    def started(self, spread: np.ndarray, variance: Parameter) -> "ScaledKernel":
        """With every parameter that was left out filled in, for inputs of that spread."""
        usual = np.sqrt(len(spread)) * spread  # how far inputs are apart grows with their width
        short = Positive(_SHORT_START * usual, centre=usual)
        filled = (positive(self.lengthscale, short), positive(self.variance, variance))
        return eqx.tree_at(lambda k: (k.lengthscale, k.variance), self, filled, is_leaf=_is_none)


class _Euclidean(Distance):
    """The Euclidean distance, differentiable where two inputs coincide.

    tinygp's own chooses between two branches there, which XLA (0.10, CPU) compiles wrongly inside
    a loop: a Gram matrix with a wrong diagonal. Here the root's argument is never zero.
    """

    def distance(self, X1: Array, X2: Array) -> Array:  # noqa: N803 (tinygp's names)
        return jnp.sqrt(self.squared_distance(X1, X2) + 1e-40)

    def squared_distance(self, X1: Array, X2: Array) -> Array:  # noqa: N803
        return jnp.sum(jnp.square(X1 - X2))


@storable
class RBF(ScaledKernel):
    """The squared exponential: infinitely smooth functions."""

    def shape(self) -> Kernel:
        return tinygp.kernels.ExpSquared(scale=1.0)


@storable
class Matern12(ScaledKernel):
    """The exponential (Ornstein-Uhlenbeck) kernel: continuous, rough functions."""

    def shape(self) -> Kernel:
        return tinygp.kernels.Exp(scale=1.0, distance=_Euclidean())


@storable
class Matern32(ScaledKernel):
    """Once-differentiable functions."""

    def shape(self) -> Kernel:
        return tinygp.kernels.Matern32(scale=1.0, distance=_Euclidean())


@storable
class Matern52(ScaledKernel):
    """Twice-differentiable functions."""

    def shape(self) -> Kernel:
        return tinygp.kernels.Matern52(scale=1.0, distance=_Euclidean())


@storable
class RationalQuadratic(ScaledKernel):
    """A mixture of RBF kernels over lengthscales; `alpha` says how narrow the mixture is."""

    alpha: Parameter = eqx.field(default_factory=lambda: Positive(1.0))

    def shape(self) -> Kernel:
        return tinygp.kernels.RationalQuadratic(scale=1.0, alpha=self.alpha)


@storable
class Linear(ScaledKernel):
    """Straight lines through the centre of the first batch."""

    def shape(self) -> Kernel:
        return tinygp.kernels.DotProduct()


@storable
class Periodic(ScaledKernel):
    """Functions that repeat with `period`, in each input; the lengthscale is relative to it.

    An RBF on the circle (cos, sin): a valid covariance in any number of inputs, where tinygp's
    own periodic kernel is one for a single input only.
    """

    period: Parameter = eqx.field(default_factory=lambda: Positive(1.0))

    def shape(self) -> Kernel:
        return tinygp.kernels.ExpSquared(scale=1.0)

    def evaluate(self, X1: Array, X2: Array) -> Array:  # noqa: N803
        def wrap(x: Array) -> Array:
            angle = 2 * jnp.pi * x / self.period
            return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)]) / self.lengthscale

        return self.variance * self.shape().evaluate(wrap(X1), wrap(X2))

    def started(self, spread: np.ndarray, variance: Parameter) -> ScaledKernel:
        start = eqx.tree_at(
            lambda k: k.lengthscale, self, positive(self.lengthscale, 1.0), is_leaf=_is_none
        )
        return ScaledKernel.started(start, spread, variance)


def start(kernel: Kernel, spread: Float[np.ndarray, " P"], variance: float | None) -> Kernel:
    """A kernel of the user's made ready to learn.

    Parameters left out are filled in; bare numbers in a foreign tinygp kernel become trainable,
    positive ones in log space. `variance=None` asks for a unit-variance kernel (its scale is the
    mixing weights' business): a lone kernel's variance is then fixed at one.
    """

    def is_node(node: Any) -> bool:
        return isinstance(node, ScaledKernel | paramax.AbstractUnwrappable)

    def ready(path: tuple, node: Any) -> Any:
        if isinstance(node, ScaledKernel):
            unit = fixed(1.0) if node is kernel else 1.0
            return _complete(node.started(spread, unit if variance is None else variance))
        if isinstance(node, paramax.AbstractUnwrappable) or _is_order(path):
            return node
        return _trainable(node)

    return jax.tree_util.tree_map_with_path(ready, kernel, is_leaf=is_node)


def _is_none(node: Any) -> bool:
    return node is None


def _complete(kernel: ScaledKernel) -> ScaledKernel:
    """Numbers given for a kernel's further parameters (`alpha`, `period`) become trainable."""
    return jax.tree.map(
        _trainable, kernel, is_leaf=lambda n: isinstance(n, paramax.AbstractUnwrappable)
    )


def _trainable(leaf: Any) -> Any:
    if not (isinstance(leaf, float) or eqx.is_inexact_array(leaf) or _is_float_array(leaf)):
        return leaf
    return Positive(leaf) if np.all(np.asarray(leaf) > 0) else Real(leaf, spread=10.0)


def _is_float_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and np.issubdtype(leaf.dtype, np.floating)


def _is_order(path: tuple) -> bool:
    """tinygp's polynomial order is a number that must not move."""
    return bool(path) and getattr(path[-1], "name", None) == "order"
