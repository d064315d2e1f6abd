"""Names for classes and functions. A file holds names; only what is registered answers to one.

Nothing is ever imported, looked up or run because a file says so. The library registers its own
classes where they are defined, with `storable`; users register theirs with `register`.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from streamgp.errors import ConfigurationError, FileError, problem

T = TypeVar("T", bound=Callable)
C = TypeVar("C", bound=type)

_RESERVED = ("streamgp.", "tinygp.", "paramax.")

_TINYGP = ("tinygp.", "streamgp.Tinygp")  # what the adapter of tinygp's kernels registers

_things: dict[str, Any] = {}
_names: dict[int, str] = {}
_ours: set[type] = set()


def storable(cls: C) -> C:
    """A class of the library that files may hold, as a decorator.

    A name is for ever: files that exist have it. A class may move to another module and keep it.
    """
    return storable_as(f"streamgp.{cls.__name__}")(cls)


def storable_as(name: str) -> Callable[[C], C]:
    """The same under a name that is not the class's own."""

    def add(cls: C) -> C:
        _ours.add(cls)
        return _add(cls, name)

    return add


def register_foreign(prefix: str, *classes: type) -> None:
    """Classes of another library that files may hold, by their own names after a prefix."""
    for cls in classes:
        _add(cls, f"{prefix}.{cls.__name__}")


@overload
def register(thing: T, *, name: str | None = None) -> T: ...
@overload
def register(thing: None = None, *, name: str | None = None) -> Callable[[T], T]: ...
def register(thing: Any = None, *, name: str | None = None) -> Any:
    """Let files hold a class or function of your own, by its name. It also works as a decorator.

    Register it wherever such a model is saved and wherever it is loaded: the file has the name and
    the fields, not the code.

    Args:
        thing: The class or function.
        name: The name in files, if not the thing's own.

    Returns:
        The thing itself.

    Raises:
        ConfigurationError: If the name is taken, or begins as the library's own names do.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> @sgp.register
        ... def three_more(t):
        ...     return 3 * t
        >>> model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Growing(three_more))
        >>> sgp.from_bytes(model.to_bytes())
        <ContinualGP {y: Gaussian}; 0 updates, 0 observations, no inducing points>
    """
    if thing is None:
        return lambda later: register(later, name=name)
    chosen = getattr(thing, "__name__", "") if name is None else name
    _check_name(thing, chosen)
    return _add(thing, chosen)


def _add(thing: Any, name: str) -> Any:
    _things[name] = thing
    _names[id(thing)] = name
    return thing


def _check_name(thing: Any, name: Any) -> None:
    usable = isinstance(name, str) and name and name != "<lambda>"
    if not (callable(thing) and usable) or name.startswith(_RESERVED):
        raise ConfigurationError(
            problem(
                "a class or function with a name that does not begin as the library's own do",
                f"{thing!r} with name {name!r}",
                "Give one with `register(…, name=…)`.",
            )
        )
    other = _things.get(name, thing)
    if other is not thing and _origin(other) != _origin(thing):  # else: defined once more
        raise ConfigurationError(
            problem(
                "a name that nothing else has",
                f"{name!r}, which is {other!r}",
                "Give another with `register(…, name=…)`.",
            )
        )


def _origin(thing: Any) -> tuple[Any, Any]:
    return getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)


def name_of(thing: Any) -> str | None:
    """The name that files have for a class or function; None if it has none."""
    name = _names.get(id(thing))
    return name if name is not None and _things[name] is thing else None


def named(name: str) -> Any:
    """The class or function that a file means.

    Raises:
        FileError: If nothing is registered under that name.
    """
    if name not in _things:
        remedy = "Import the module that defines it, and `streamgp.register` it, before loading."
        if str(name).startswith(_TINYGP):
            remedy = (
                "It is a kernel of tinygp: `import streamgp.kernels.tinygp_adapter` before "
                "loading. That needs tinygp, as in `pip install streamgp[jax]`."
            )
        raise FileError(
            problem(f"{name!r} among the names that are known here", "none such", remedy)
        )
    return _things[name]


def is_ours(cls: type) -> bool:
    """Whether a class is one of the library's own."""
    return cls in _ours


def is_of_tinygp(cls: type) -> bool:
    """Whether a class is one of tinygp's, which are registered when its adapter is imported."""
    return cls.__module__.split(".")[0] == "tinygp"
