"""Kernels of tinygp. Only this module needs JAX, and it is imported when such a kernel is given.

A tinygp kernel is evaluated by small compiled programs in double precision. Inputs are padded to a
power of two rows, so that few shapes are compiled, and NumPy arrays come out.

Files may hold the kernels that this module registers. Import it before loading such a file.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tinygp
from jaxtyping import Float
from tinygp.kernels import base, distance, stationary

from streamgp.kernels.base import Gradient, Kernel
from streamgp.kernels.composite import added, as_kernel, multiplied
from streamgp.kernels.differences import is_number
from streamgp.kernels.shapes import Inputs, Matrix, Others, Values
from streamgp.parameters import Node, Parameter
from streamgp.registry import register_foreign, storable

_FEWEST_ROWS = 8

register_foreign(
    "tinygp",
    *(base.Constant, base.Custom, base.DotProduct, base.Polynomial, base.Product, base.Sum),
    *(stationary.Cosine, stationary.Exp, stationary.ExpSineSquared, stationary.ExpSquared),
    *(stationary.Matern32, stationary.Matern52, stationary.RationalQuadratic),
    *(distance.L1Distance, distance.L2Distance),
)
register_foreign(
    "tinygp.transforms",
    *(tinygp.transforms.Cholesky, tinygp.transforms.Linear),
    *(tinygp.transforms.Subspace, tinygp.transforms.Transform),
)


def adapted(kernel: "tinygp.kernels.Kernel") -> Kernel:
    """A tinygp kernel as one of this package.

    tinygp takes any stranger in a sum or product for a constant. So a sum or product of its kernel
    with one of ours arrives here with ours inside, and is taken apart again.
    """
    if isinstance(kernel, tinygp.kernels.Sum | tinygp.kernels.Product) and _holds_ours(kernel):
        combine = added if isinstance(kernel, tinygp.kernels.Sum) else multiplied
        return combine(as_kernel(kernel.kernel1), as_kernel(kernel.kernel2))
    if isinstance(kernel, tinygp.kernels.Constant) and isinstance(kernel.value, Kernel):
        return kernel.value
    programs = TinygpPrograms(jax.tree.map(_out_of_jax, kernel))
    return TinygpKernel(programs.leaves, programs)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class TinygpKernel(Kernel):
    """A kernel of tinygp, split into its floating-point numbers and the programs that use them."""

    leaves: tuple[Parameter, ...]
    programs: "TinygpPrograms"

    def __post_init__(self) -> None:
        found, known = len(self.leaves), len(self.programs.leaves)
        if found != known:
            raise ValueError(f"{found} numbers for a kernel that has {known}")

    def matrix(self, x1: Inputs, x2: Others) -> Matrix:
        padded = self.programs.matrix(self.leaves, _padded(x1), _padded(x2))
        return padded[: len(x1), : len(x2)].copy()

    def diagonal(self, x: Inputs) -> Values:
        return self.programs.diagonal(self.leaves, _padded(x))[: len(x)].copy()

    def pullback(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Gradient:
        first, second = _padded(x1), _padded(x2)
        own = _padded_weights(weights, (len(first), len(second)))
        return {"leaves": self.programs.pullback(self.leaves, first, second, own)}

    def diagonal_pullback(self, x: Inputs, weights: Values) -> Gradient:
        rows = _padded(x)
        own = _padded_weights(weights, (len(rows),))
        return {"leaves": self.programs.diagonal_pullback(self.leaves, rows, own)}

    def input_gradient(
        self, x1: Inputs, x2: Others, weights: Matrix, matrix: Matrix | None = None
    ) -> Inputs:
        first, second = _padded(x1), _padded(x2)
        own = _padded_weights(weights, (len(first), len(second)))
        gradient = self.programs.input_gradient(self.leaves, first, second, own)
        return gradient[: len(x1)].copy()


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class TinygpPrograms:
    """The compiled programs of one tinygp kernel. Copies of a kernel with other numbers share them.

    They hold nothing that changes, so that several threads may use them at once.

    Args:
        kernel: The kernel as it was given. Its numbers are where parameters start.
    """

    kernel: Any

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, tinygp.kernels.Kernel):
            raise TypeError(f"expected a kernel of tinygp; got {self.kernel!r}")

    @functools.cached_property
    def leaves(self) -> tuple[Parameter, ...]:
        """The kernel's parameters as they were given."""
        return tuple(_in_numpy(self._parts.leaves[k]) for k in self._parts.places)

    @functools.cached_property
    def matrix(self) -> Callable[..., Any]:
        return _compiled(self._matrix)

    @functools.cached_property
    def diagonal(self) -> Callable[..., Any]:
        return _compiled(self._diagonal)

    @functools.cached_property
    def pullback(self) -> Callable[..., Any]:
        return _compiled(jax.grad(_weighted(self._matrix)))

    @functools.cached_property
    def diagonal_pullback(self) -> Callable[..., Any]:
        return _compiled(jax.grad(_weighted(self._diagonal)))

    @functools.cached_property
    def input_gradient(self) -> Callable[..., Any]:
        return _compiled(jax.grad(_weighted(self._matrix), argnums=1))

    @functools.cached_property
    def _parts(self) -> "_Parts":
        paths, structure = jax.tree_util.tree_flatten_with_path(self.kernel)
        places = [k for k, (path, leaf) in enumerate(paths) if _is_parameter(path, leaf)]
        return _Parts([leaf for _, leaf in paths], places, structure)

    def __eq__(self, other: object) -> bool:
        """Whether two kernels differ in nothing but the numbers that are learned."""
        if not isinstance(other, TinygpPrograms):
            return False
        mine, its = self._parts, other._parts
        same = mine.structure == its.structure and mine.places == its.places
        return same and all(map(np.array_equal, mine.settings(), its.settings()))

    def __hash__(self) -> int:
        return hash(self._parts.structure)

    def __reduce__(self) -> tuple:
        """Compiled programs cannot be pickled or copied, but made again."""
        return TinygpPrograms, (self.kernel,)

    def _kernel(self, leaves: tuple) -> "tinygp.kernels.Kernel":
        filled = list(self._parts.leaves)
        for place, leaf in zip(self._parts.places, leaves, strict=True):
            filled[place] = leaf
        return jax.tree_util.tree_unflatten(self._parts.structure, filled)

    def _matrix(self, leaves: tuple, x1: jax.Array, x2: jax.Array) -> jax.Array:
        return self._kernel(leaves)(x1, x2)

    def _diagonal(self, leaves: tuple, x: jax.Array) -> jax.Array:
        return self._kernel(leaves)(x)


class _Parts(NamedTuple):
    """A kernel as JAX takes it apart, and which of its leaves are parameters."""

    leaves: list[Any]
    places: list[int]
    structure: Any

    def settings(self) -> list[Any]:
        """The leaves that are not learned."""
        return [leaf for k, leaf in enumerate(self.leaves) if k not in self.places]


def _weighted(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """The weighted sum of what the function gives; the weights come last."""
    return lambda leaves, *rest: jnp.vdot(rest[-1], function(leaves, *rest[:-1]))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled, in double precision whatever JAX is set to, with NumPy results."""
    program = jax.jit(function)

    def call(leaves: tuple, *arrays: np.ndarray) -> Any:
        with jax.enable_x64(True):
            own = tuple(np.asarray(leaf, float) for leaf in leaves)
            return jax.tree.map(np.asarray, program(own, *arrays))

    return call


def _holds_ours(kernel: Any) -> bool:
    """Whether one of our kernels is anywhere in a tree of sums and products."""
    if isinstance(kernel, tinygp.kernels.Sum | tinygp.kernels.Product):
        return _holds_ours(kernel.kernel1) or _holds_ours(kernel.kernel2)
    return isinstance(kernel, Kernel) or isinstance(getattr(kernel, "value", None), Kernel)


def _is_parameter(path: tuple, leaf: Any) -> bool:
    """Any floating-point number but a polynomial's order, which must not move."""
    is_order = bool(path) and getattr(path[-1], "name", None) == "order"
    return isinstance(leaf, Node) or (is_number(leaf) and not is_order)


def _out_of_jax(leaf: Any) -> Any:
    """An array of JAX as one of NumPy; anything else as it is."""
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def _in_numpy(leaf: Any) -> Parameter:
    return leaf if isinstance(leaf, Node) else np.asarray(leaf, float)


def _padded(x: Inputs) -> Float[np.ndarray, "R P"]:
    """Rows up to a power of two, more of the last one: any kernel is finite there."""
    rows = max(_FEWEST_ROWS, 1 << (len(x) - 1).bit_length()) if len(x) else _FEWEST_ROWS
    padded = np.zeros((rows, x.shape[1]))
    padded[: len(x)] = x
    if len(x):
        padded[len(x) :] = x[-1]
    return padded


def _padded_weights(weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    padded = np.zeros(shape)
    padded[tuple(map(slice, weights.shape))] = weights
    return padded
