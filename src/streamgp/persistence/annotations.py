"""Whether an instance holds what its class's annotations say, as far as a file could get wrong."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from jaxtyping import AbstractArray


def misfit(instance: Any) -> str | None:
    """The first attribute that is not what it is annotated as, in words; None if all are."""
    for name, annotation in _hints(instance.__class__).items():
        value = getattr(instance, name)
        if not _fits(value, annotation):
            return f"{type(instance).__name__}.{name} is {value!r}"
    return None


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {n: a for n, a in hints.items() if typing.get_origin(a) is not typing.ClassVar}


def _fits(value: Any, annotation: Any) -> bool:
    if annotation is Any:
        return True
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in args)
    if origin is typing.Literal:
        return value in args
    if origin is Callable:
        return callable(value)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, args[0]) for item in value)
    if origin is Mapping:
        pairs = value.items() if isinstance(value, Mapping) else [(None, None)]
        return all(_fits(k, args[0]) and _fits(v, args[1]) for k, v in pairs)
    return _is(value, annotation)


def _is(value: Any, annotation: Any) -> bool:
    if annotation in (int, float):
        number = Integral if annotation is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if inspect.isclass(annotation) and issubclass(annotation, AbstractArray):
        return isinstance(value, np.ndarray | np.generic)
    return not inspect.isclass(annotation) or isinstance(value, annotation)
