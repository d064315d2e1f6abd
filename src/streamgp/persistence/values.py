"""Values as JSON and tensors, and back.

JSON's own scalars, strings and lists stand for themselves. Everything else is an object whose
first key says what it is: a tuple, a dictionary, an array, an instance, a function, or a
float that JSON lacks. Arrays become tensors named by where they are.
"""

import dataclasses
import functools
import types
from typing import Any

import numpy as np

from streamgp import registry
from streamgp.data.columns import loaded
from streamgp.errors import FileError, problem
from streamgp.parameters import Module
from streamgp.persistence.annotations import misfit
from streamgp.persistence.container import Tensors

_DTYPES = {
    *("float16", "float32", "float64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, np.ufunc)


# -- writing -----------------------------------------------------------------------------------


def encode(value: Any, place: str, tensors: Tensors) -> Any:
    """The value as JSON; its arrays go into `tensors`. `place` says where it is in the model."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is np.str_:
        return str(value)
    if kind is float:
        return value if np.isfinite(value) else {"float": str(value)}
    if kind is list:
        return _encode_items(value, place, tensors)
    if kind is tuple:
        return {"tuple": _encode_items(value, place, tensors)}
    if isinstance(value, dict | types.MappingProxyType) and kind.__module__ == "builtins":
        return {"dict": _encode_items([list(item) for item in value.items()], place, tensors)}
    if isinstance(value, (np.ndarray, np.generic, *loaded("jax", "Array"))):
        return _encode_array(value, place, tensors)
    return _encode_named(value, place, tensors)


def _encode_items(items: Any, place: str, tensors: Tensors) -> list:
    return [encode(item, f"{place}/{i}", tensors) for i, item in enumerate(items)]


def _encode_array(value: Any, place: str, tensors: Tensors) -> dict:
    name = str(value.dtype)
    kind = "scalar" if isinstance(value, np.generic) else "numpy"
    if name not in _DTYPES:
        raise FileError(
            problem(
                f"real numbers or booleans at {place}",
                f"an array of {name}",
                "Convert it before the model is made.",
            )
        )
    tensors[place] = np.asarray(value, np.dtype(name), order="C")
    return {"array": place, "kind": kind}


def _encode_named(value: Any, place: str, tensors: Tensors) -> dict:
    if registry.is_of_tinygp(type(value)):
        import streamgp.kernels.tinygp_adapter  # noqa: F401 (it registers them)
    function = registry.name_of(value)
    if function is not None:
        return {"function": function}
    name = registry.name_of(type(value))
    if name is None or isinstance(value, _FUNCTIONS):
        raise _unknown(value, place)
    fields = attributes(value).items()
    return {
        "class": name,
        "fields": {key: encode(item, f"{place}/{key}", tensors) for key, item in fields},
    }


def attributes(value: Any) -> dict[str, Any]:
    """What a file has of an instance, by name."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if dataclasses.is_dataclass(type(value)):
        return {name: getattr(value, name) for name in _fields(value.__class__)}
    return vars(value)


@functools.cache
def _fields(cls: Any) -> dict[str, dataclasses.Field]:
    """The fields of a dataclass by name."""
    return {field.name: field for field in dataclasses.fields(cls)}


def _unknown(value: Any, place: str) -> FileError:
    function = isinstance(value, _FUNCTIONS)
    name = getattr(value if function else type(value), "__name__", "it")
    what = "a function" if function else f"an instance of the class {name}"
    first = "Define it with `def`, and call" if name == "<lambda>" else "Call"
    name = "it" if name == "<lambda>" else name
    return FileError(
        problem(
            f"only registered classes and functions in a model that is saved, at {place}",
            f"{value!r}, {what} that is not",
            f"{first} `streamgp.register({name})` before saving, and before loading.",
        )
    )


# -- reading -----------------------------------------------------------------------------------


def decode(value: Any, source: Tensors) -> Any:
    """What `encode` was given, of the same types all through."""
    if isinstance(value, list):
        return [decode(item, source) for item in value]
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), None)
    if kind not in _DECODERS:
        raise ValueError(f"a value of unknown kind {kind!r}")
    return _DECODERS[kind](value, source)


def _decode_float(value: dict, source: Tensors) -> float:
    return float(value["float"])


def _decode_tuple(value: dict, source: Tensors) -> tuple:
    return tuple(decode(value["tuple"], source))


def _decode_dict(value: dict, source: Tensors) -> dict:
    return {key: item for key, item in decode(value["dict"], source)}  # noqa: C416 (checks pairs)


def _decode_array(value: dict, source: Tensors) -> Any:
    array = source[value["array"]]
    return {"numpy": array, "scalar": array[()]}[value["kind"]]


def _decode_function(value: dict, source: Tensors) -> Any:
    return registry.named(value["function"])


def _decode_class(value: dict, source: Tensors) -> Any:
    cls = registry.named(value["class"])
    if not isinstance(cls, type):
        raise TypeError(f"{value['class']!r} is not a class")
    fields = {name: decode(item, source) for name, item in value["fields"].items()}
    fields = _complete(cls, fields)
    made: Any = cls(**fields) if issubclass(cls, tuple) else _made(cls, fields)
    _check_made(made)
    return made


def _made(cls: type, fields: dict[str, Any]) -> Any:
    """Without `__init__`: it has run before, and its results are in the fields."""
    made: Any = object.__new__(cls)
    for name, item in fields.items():
        object.__setattr__(made, name, item)
    return made


_DECODERS = {
    "float": _decode_float,
    "tuple": _decode_tuple,
    "dict": _decode_dict,
    "array": _decode_array,
    "function": _decode_function,
    "class": _decode_class,
}


def _complete(cls: type, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with the defaults of those that the class did not have when they were saved."""
    if not dataclasses.is_dataclass(cls):
        return fields
    known = _fields(cls)
    if fields.keys() == known.keys():
        return fields
    defaults = {
        name: _default(field)
        for name, field in known.items()
        if name not in fields and _default(field) is not dataclasses.MISSING
    }
    missing = set(known) - set(fields) - set(defaults)
    strict = registry.is_ours(cls) or issubclass(cls, Module)
    extra = set(fields) - set(known) if strict else set()
    if missing or extra:
        raise FileError(
            problem(
                f"the fields {sorted(known)} of class {cls.__name__}",
                f"{sorted(fields)}",
                "The class has changed since: load with the version that the file was saved with.",
            )
        )
    return {**defaults, **fields}


def _default(field: dataclasses.Field) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def _check_made(made: Any) -> None:
    """The class's own checks of what it holds, and, for the library's, its annotations."""
    if registry.is_ours(type(made)):
        wrong = misfit(made)
        if wrong is not None:
            raise TypeError(wrong)
    getattr(made, "__post_init__", lambda: None)()
    for cls in type(made).__mro__:  # what the modules of equinox, which tinygp's are, have instead
        vars(cls).get("__check_init__", lambda _: None)(made)
