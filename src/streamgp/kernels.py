"""Kernels: covariance functions whose parameters are named, constrained and trainable.

Every kernel here is a tinygp kernel, so that `+`, `*` and tinygp's transforms work. A model also
takes any other tinygp kernel. A parameter that is left out starts from the first batch. A number is
where learning starts, and `streamgp.fixed(number)` keeps a parameter as it is. All of them are in
the units of the user's inputs.
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

# The classes of tinygp that files may hold, by the names that files have for them.
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

# Lengthscales start well below the spread of the inputs. From there, learning finds longer ones.
# From a long start, fast changes look like noise, and learning keeps it so.
_SHORT_START = 0.25


class ScaledKernel(Kernel):
    """The base class of the kernels here: variance · shape(x / lengthscale, x' / lengthscale).

    Args:
        lengthscale: See `RBF`.
        variance: See `RBF`.
    """

    lengthscale: Parameter = None
    variance: Parameter = None

    @abstractmethod
    def shape(self) -> Kernel:
        """The tinygp kernel with unit variance and unit lengthscale."""

    def evaluate(self, X1: Array, X2: Array) -> Array:  # noqa: N803 (tinygp's names)
        return self.variance * self.shape().evaluate(X1 / self.lengthscale, X2 / self.lengthscale)

    def started(self, spread: np.ndarray, variance: Parameter) -> "ScaledKernel":
        """The same kernel, with every parameter that was left out filled in.

        Args:
            spread: The spread of each input column.
            variance: Where the variance starts.

        Returns:
            A kernel whose parameters can be trained.
        """
        usual = np.sqrt(len(spread)) * spread  # distances grow with the number of columns
        short = Positive(_SHORT_START * usual, centre=usual)
        filled = (positive(self.lengthscale, short), positive(self.variance, variance))
        return eqx.tree_at(lambda k: (k.lengthscale, k.variance), self, filled, is_leaf=_is_none)


class _Euclidean(Distance):
    """The Euclidean distance, differentiable also where two inputs coincide.

    tinygp's own distance selects between two branches there. XLA (0.10, CPU) compiles that wrongly
    inside a loop, and the diagonal of the Gram matrix is wrong. Here the argument of the root is
    never zero, so that no branches are needed.
    """

    def distance(self, X1: Array, X2: Array) -> Array:  # noqa: N803 (tinygp's names)
        return jnp.sqrt(self.squared_distance(X1, X2) + 1e-40)

    def squared_distance(self, X1: Array, X2: Array) -> Array:  # noqa: N803
        return jnp.sum(jnp.square(X1 - X2))


@storable
class RBF(ScaledKernel):
    """The squared exponential kernel: functions that are infinitely smooth.

    Args:
        lengthscale: The distance over which functions change, in the units of the inputs; positive.
            One number for all input columns, or an array with one per column. By default there is
            one per column, which starts at a quarter of the spread of that column in the first
            batch, times the square root of the number of columns. It is learned, unless it is
            given as `fixed(…)`.
        variance: The variance of the functions; positive. In a model with one channel and one
            latent function it starts at the variance of the first data by default, and is learned.
            In other models the mixing weights carry the scale: by default the variance is then
            fixed at 1, or starts at 1 in a sum or a product of kernels. A number that is given is
            where learning starts, and `fixed(…)` keeps it.

    Example:
        >>> import streamgp as sgp
        >>> kernel = sgp.RBF(lengthscale=sgp.fixed(2.0)) + sgp.Periodic(period=7.0)
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=kernel).channels
        ('y',)
    """

    def shape(self) -> Kernel:
        return tinygp.kernels.ExpSquared(scale=1.0)


@storable
class Matern12(ScaledKernel):
    """The exponential (Ornstein-Uhlenbeck) kernel: functions that are continuous and rough.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    def shape(self) -> Kernel:
        return tinygp.kernels.Exp(scale=1.0, distance=_Euclidean())


@storable
class Matern32(ScaledKernel):
    """The Matérn kernel with ν = 3/2: functions that can be differentiated once.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    def shape(self) -> Kernel:
        return tinygp.kernels.Matern32(scale=1.0, distance=_Euclidean())


@storable
class Matern52(ScaledKernel):
    """The Matérn kernel with ν = 5/2: functions that can be differentiated twice.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    def shape(self) -> Kernel:
        return tinygp.kernels.Matern52(scale=1.0, distance=_Euclidean())


@storable
class RationalQuadratic(ScaledKernel):
    """A mixture of RBF kernels with different lengthscales.

    Args:
        lengthscale: The distance over which functions change. See `RBF`.
        variance: The variance of the functions. See `RBF`.
        alpha: How narrow the mixture is; positive. The larger it is, the closer the kernel is to an
            RBF. It starts at 1 by default, and is learned, unless it is given as `fixed(…)`.
    """

    alpha: Parameter = eqx.field(default_factory=lambda: Positive(1.0))

    def shape(self) -> Kernel:
        return tinygp.kernels.RationalQuadratic(scale=1.0, alpha=self.alpha)


@storable
class Linear(ScaledKernel):
    """The linear kernel: straight lines that are zero at the centre of the first batch.

    Args:
        lengthscale: The distance from the centre at which the variance is reached. See `RBF`.
        variance: The variance of the functions. See `RBF`.
    """

    def shape(self) -> Kernel:
        return tinygp.kernels.DotProduct()


@storable
class Periodic(ScaledKernel):
    """Functions that repeat themselves with a period, in each input column.

    This is an RBF kernel on the circle (cos, sin). Unlike tinygp's own periodic kernel it is a
    valid covariance for any number of input columns.

    Args:
        lengthscale: How smooth the functions are within a period, as a distance on a circle of
            radius 1; positive. It starts at 1 by default, and is learned, unless it is given as
            `fixed(…)`.
        variance: The variance of the functions. See `RBF`.
        period: The period, in the units of the inputs (days, for times); positive. It starts at 1
            by default, and is learned, unless it is given as `fixed(…)`.

    Example:
        >>> import streamgp as sgp
        >>> weekly = sgp.Periodic(period=sgp.fixed(7.0))
        >>> sgp.ContinualGP(sgp.Gaussian(), latents=weekly).channels
        ('y',)
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
    """Make a kernel of the user ready to learn.

    Parameters that were left out are filled in. Numbers in other tinygp kernels become trainable;
    positive ones stay positive.

    Args:
        kernel: The kernel.
        spread: The spread of each input column.
        variance: Where variances start. None if the mixing weights carry the scale: the variance of
            a single kernel is then fixed at 1, and those in a sum or a product start at 1.

    Returns:
        The kernel with parameters that can be trained.
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
    """The kernel with trainable parameters where numbers were given for `alpha` or `period`."""
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
    """Whether a number is the order of tinygp's polynomial kernel, which must not be learned."""
    return bool(path) and getattr(path[-1], "name", None) == "order"
