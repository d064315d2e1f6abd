"""Trainable parameters: constrained, with a weak prior each, and freezable.

A kernel, a likelihood or a channel is a frozen dataclass (a `Module`) whose fields may hold nodes
of this file. `unwrap` turns a tree of modules into one of plain numbers, which is what the algebra
reads. `free_vector` lists what an optimiser may move, in the order of the fields; `with_free` puts
such a vector back. `free_gradient` takes derivatives by the plain numbers to derivatives by that
vector.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeAlias

import numpy as np

from streamgp.errors import ConfigurationError, problem
from streamgp.registry import storable


class Node(ABC):
    """One parameter, of any shape."""

    @property
    @abstractmethod
    def value(self) -> np.ndarray:
        """The number that the algebra reads."""

    @property
    @abstractmethod
    def free(self) -> np.ndarray:
        """What an optimiser may move; empty for a fixed parameter."""

    @abstractmethod
    def with_free(self, free: np.ndarray) -> Self:
        """The same parameter elsewhere."""

    @abstractmethod
    def pulled(self, gradient: np.ndarray) -> np.ndarray:
        """A derivative by `value` as one by `free`, flat."""

    @abstractmethod
    def prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and spread of the normal prior on `free`, flat; the spread may differ by side."""

    def recentred(self, shift: np.ndarray) -> Self:
        """The same parameter with the centre of its prior moved. Most priors cannot be moved."""
        return self

    def believed(self, centre: np.ndarray, spread: np.ndarray) -> Self:
        """The same parameter there, and its prior, if that can be moved."""
        return self.with_free(centre)


@storable
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class Positive(Node):
    """A positive number, moved in log space, with a log-normal prior around `centre`.

    The spread is in natural log units: 1.5 keeps a parameter within a factor of about 20 of its
    start unless the data insist. It is what stops too few inducing points from driving a kernel
    variance to 1e5. Below the centre it is `below` times the spread.

    With `least` or `floor`, what is moved is one of two independent parts of a deviation; the other
    one, the larger of the two, is known, so that the whole is never less. Data may show that
    `least` was too much; `floor` stays.
    """

    log_value: np.ndarray
    log_centre: np.ndarray
    spread: float
    below: float = 1.0
    least: float = 0.0
    floor: float = 0.0

    def __init__(self, value: Any, centre: Any = None, spread: float = 1.5, below: float = 1.0):
        centre = value if centre is None else centre
        object.__setattr__(self, "log_value", np.asarray(np.log(np.asarray(value, float))))
        object.__setattr__(self, "log_centre", np.asarray(np.log(np.asarray(centre, float))))
        object.__setattr__(self, "spread", float(spread))
        object.__setattr__(self, "below", float(below))
        object.__setattr__(self, "least", 0.0)
        object.__setattr__(self, "floor", 0.0)

    @property
    def value(self) -> np.ndarray:
        moved = np.asarray(np.exp(self.log_value))
        return np.asarray(np.hypot(moved, self._known)) if self._known else moved

    @property
    def _known(self) -> float:
        return max(self.least, self.floor)

    @property
    def free(self) -> np.ndarray:
        return self.log_value

    def with_free(self, free: np.ndarray) -> "Positive":
        return replaced(self, log_value=free)

    def pulled(self, gradient: np.ndarray) -> np.ndarray:
        value = self.value
        part = (np.exp(self.log_value) / value) ** 2 if self._known else 1.0
        return np.ravel(gradient * value * part)

    def prior(self) -> tuple[np.ndarray, np.ndarray]:
        shape = self.log_value.shape
        centre = np.ravel(np.broadcast_to(self.log_centre, shape))
        is_below = np.ravel(self.log_value) < centre
        return centre, np.where(is_below, self.below * self.spread, self.spread)

    def recentred(self, shift: np.ndarray) -> "Positive":
        # A sum of arrays of no dimensions is a number of NumPy's, and no array.
        return replaced(self, log_centre=np.asarray(self.log_centre + shift))

    def believed(self, centre: np.ndarray, spread: np.ndarray) -> "Positive":
        """All numbers of a parameter have one spread: the largest of theirs."""
        return replaced(
            self, log_value=centre, log_centre=centre, spread=float(np.max(spread)), below=1.0
        )


@storable
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class Real(Node):
    """A real number with a normal prior around zero."""

    number: np.ndarray
    spread: float

    def __init__(self, value: Any, spread: float = 1.0):
        object.__setattr__(self, "number", np.asarray(value, float))
        object.__setattr__(self, "spread", float(spread))

    @property
    def value(self) -> np.ndarray:
        return self.number

    @property
    def free(self) -> np.ndarray:
        return self.number

    def with_free(self, free: np.ndarray) -> "Real":
        return replaced(self, number=free)

    def pulled(self, gradient: np.ndarray) -> np.ndarray:
        return np.ravel(gradient)

    def prior(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(self.number.size), np.full(self.number.size, self.spread)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Frozen(Node):
    """A number that learning never touches."""

    number: np.ndarray

    @property
    def value(self) -> np.ndarray:
        return self.number

    @property
    def free(self) -> np.ndarray:
        return np.zeros(0)

    def with_free(self, free: np.ndarray) -> "Frozen":
        return self

    def pulled(self, gradient: np.ndarray) -> np.ndarray:
        return np.zeros(0)

    def prior(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(0), np.zeros(0)


# What a module's field holds for a parameter: a number or an array as the user gave it, a node of
# this file once the model has started, a plain array once unwrapped.
Parameter: TypeAlias = Any


def fixed(value: Any) -> Frozen:
    """Keep a parameter of a kernel or a likelihood at a value, or keep mixing weights.

    Args:
        value: A number, or an array.

    Returns:
        A parameter that learning never changes, to be given in place of a number.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.Gaussian(noise=sgp.fixed(0.1)).noise
        Frozen(number=array(0.1))
    """
    return Frozen(np.asarray(value, float))


def positive(value: Parameter | None, default: Any) -> Node:
    """What the user gave (a number, or a node as it is), else the default."""
    chosen = default if value is None else value
    numbers = chosen.value if isinstance(chosen, Node) else np.asarray(chosen)
    if not (numbers.dtype.kind in "iuf" and np.all(np.isfinite(numbers) & (numbers > 0))):
        raise ConfigurationError(
            problem("a positive number", str(numbers), "It stands for a scale or a variance.")
        )
    return chosen if isinstance(chosen, Node) else Positive(chosen)


# -- modules -------------------------------------------------------------------------------------


class Module:
    """A frozen dataclass whose fields may hold parameters, other modules, or tuples of modules."""


def replaced(instance: Any, **changes: Any) -> Any:
    """A copy of a frozen dataclass with some fields changed; nothing is checked again."""
    copy = object.__new__(type(instance))
    copy.__dict__.update(instance.__dict__)
    copy.__dict__.update(changes)
    return copy


_names: dict[type, tuple[str, ...]] = {}  # of the fields, since `dataclasses.fields` is slow


def field_names(cls: type) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    if cls not in _names:
        _names[cls] = tuple(field.name for field in dataclasses.fields(cls))
    return _names[cls]


def fields_of(module: Module) -> Iterator[tuple[str, Any]]:
    """The name and the value of each field."""
    for name in field_names(module.__class__):
        yield name, getattr(module, name)


def unwrap(tree: Any) -> Any:
    """The same tree with plain numbers for its parameters."""
    if isinstance(tree, Node):
        return tree.value
    if isinstance(tree, tuple):
        return tuple(map(unwrap, tree))
    if not isinstance(tree, Module):
        return tree
    changes = {
        name: unwrap(value)
        for name, value in fields_of(tree)
        if isinstance(value, Node | Module | tuple)
    }
    return replaced(tree, **changes) if changes else tree


def nodes_of(tree: Any) -> Iterator[Node]:
    """Every parameter, in the order of the fields."""
    if isinstance(tree, Node):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from nodes_of(part)
    elif isinstance(tree, Module):
        for name in field_names(tree.__class__):
            yield from nodes_of(getattr(tree, name))


def free_vector(tree: Any) -> np.ndarray:
    """What may be trained, as one vector."""
    return np.concatenate([np.zeros(0), *(np.ravel(node.free) for node in nodes_of(tree))])


def free_size(tree: Any) -> int:
    return sum(node.free.size for node in nodes_of(tree))


def with_free(tree: Any, vector: np.ndarray) -> Any:
    """The tree with that vector for what may be trained."""
    return _with_parts(tree, vector, lambda node, own: node.with_free(own))


def recentred(tree: Any, shift: np.ndarray) -> Any:
    """The tree with the centres of its priors moved by that vector."""
    return _with_parts(tree, shift, lambda node, own: node.recentred(own))


def believed(tree: Any, centre: np.ndarray, spread: np.ndarray) -> Any:
    """The tree with its parameters, and where they can be moved their priors, at other centres."""
    numbers = np.arange(len(centre))

    def moved(node: Node, own: np.ndarray) -> Node:
        return node.believed(np.asarray(centre[own]), np.asarray(spread[own]))

    return _with_parts(tree, numbers, moved)


def _with_parts(tree: Any, vector: np.ndarray, change: Callable[[Node, np.ndarray], Node]) -> Any:
    """The tree with each free parameter changed by its own part of a vector."""
    rest = [vector]

    def put(part: Any) -> Any:
        if isinstance(part, Node):
            old = part.free
            own, rest[0] = rest[0][: old.size], rest[0][old.size :]
            return change(part, own.reshape(old.shape)) if old.size else part
        if isinstance(part, tuple):
            return tuple(map(put, part))
        if not isinstance(part, Module):
            return part
        return replaced(part, **{
            name: put(value)
            for name, value in fields_of(part)
            if isinstance(value, Node | Module | tuple)
        })  # fmt: skip

    return put(tree)


def free_gradient(tree: Any, gradients: Any) -> np.ndarray:
    """Derivatives by the free vector from those by the plain numbers.

    `gradients` mirrors the tree: a dictionary by field for a module, a tuple for a tuple, an array
    for a parameter. What it leaves out is zero.
    """
    if isinstance(tree, Node):
        size = tree.free.size
        return np.zeros(size) if gradients is None else tree.pulled(np.asarray(gradients))
    if isinstance(tree, tuple):
        given = gradients if gradients is not None else (None,) * len(tree)
        return np.concatenate([np.zeros(0), *map(free_gradient, tree, given)])
    if not isinstance(tree, Module):
        return np.zeros(0)
    known: Mapping[str, Any] = gradients or {}
    parts = [free_gradient(value, known.get(name)) for name, value in fields_of(tree)]
    return np.concatenate([np.zeros(0), *parts])


def prior_of(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Centres and spreads of the normal priors on the free vector, on the sides where it is."""
    pairs = [node.prior() for node in nodes_of(tree)]
    centres, spreads = zip(*pairs, strict=True) if pairs else ((), ())
    return np.concatenate([np.zeros(0), *centres]), np.concatenate([np.zeros(0), *spreads])
