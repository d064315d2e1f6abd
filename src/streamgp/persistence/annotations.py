"""Whether an instance holds what its class's annotations say, as far as a file could get wrong."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import AbstractArray

Fits = Callable[[Any], bool]

# What counts as one of these. A number of NumPy's is also an array without dimensions.
_KINDS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    np.ndarray: (np.ndarray, np.generic),
}


def misfit(instance: Any) -> str | None:
    """The first attribute that is not what it is annotated as, in words; None if all are."""
    for name, fits in _tests(instance.__class__):
        value = getattr(instance, name)
        if not fits(value):
            return f"{type(instance).__name__}.{name} is {value!r}"
    return None


@functools.cache
def _tests(cls: Any) -> list[tuple[str, Fits]]:
    """A test of each attribute, made once: every object of a file is tested."""
    hints = typing.get_type_hints(cls)
    return [(n, _test(a)) for n, a in hints.items() if typing.get_origin(a) is not typing.ClassVar]


def _test(annotation: Any) -> Fits:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        tests = list(map(_test, args))
        return lambda value: any(fits(value) for fits in tests)
    if origin is typing.Literal:
        return lambda value: value in args
    if origin is Callable:
        return callable
    if origin is tuple:
        item = _test(args[0])
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    if origin is Mapping:
        key, item = map(_test, args)
        return lambda value: (
            isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
        )
    return _test_of_class(annotation)


def _test_of_class(annotation: Any) -> Fits:
    if annotation is Any or not inspect.isclass(annotation):  # too free to be tested
        return lambda value: True
    is_array = issubclass(annotation, AbstractArray)
    kinds = _KINDS.get(np.ndarray if is_array else annotation, (annotation,))
    if annotation not in (bool, int, float):
        return lambda value: isinstance(value, kinds)
    others = () if annotation is bool else (bool,)  # to Python, True is a whole number

    def is_number(value: Any) -> bool:
        if isinstance(value, np.ndarray) and not value.ndim:
            value = value[()]
        return isinstance(value, kinds) and not isinstance(value, others)

    return is_number
