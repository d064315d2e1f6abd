"""Names for classes and functions. A file holds names; only what is listed here answers to one.

Nothing is ever imported, looked up or run because a file says so.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import paramax
import tinygp
from tinygp.kernels import base, distance, stationary

from streamgp import inducing, kernels, likelihoods
from streamgp.data.axes import Axis, Schema
from streamgp.errors import ConfigurationError, FileError, problem
from streamgp.forgetting import Forgetting
from streamgp.generative import Channel, Generative
from streamgp.inference.carry import Marginals, Projection
from streamgp.inference.conditioning import Inducing
from streamgp.inference.memory import Memory
from streamgp.inference.sites import Site
from streamgp.learner import VEM, Learner, State
from streamgp.parameters import Positive, Real
from streamgp.progress import Progress
from streamgp.watch import Watch

T = TypeVar("T", bound=Callable)

# A name is for ever: files that exist have it. A class may move to another module and keep it.
_OURS: tuple[type, ...] = (
    *(getattr(likelihoods, name) for name in likelihoods.__all__ if name != "Likelihood"),
    *(inducing.Adaptive, inducing.Fixed, inducing.Growing, inducing.KMeans),
    inducing.Refined,
    *(kernels.RBF, kernels.Matern12, kernels.Matern32, kernels.Matern52),
    *(kernels.Linear, kernels.Periodic, kernels.RationalQuadratic),
    *(Axis, Schema),
    *(Channel, Forgetting, Generative, Inducing, Learner, Marginals, Memory, Positive),
    *(Progress, Projection, Real, Site, State, VEM, Watch),
)
_TINYGP: tuple[type, ...] = (
    *(base.Constant, base.Custom, base.DotProduct, base.Polynomial, base.Product, base.Sum),
    *(stationary.Cosine, stationary.Exp, stationary.ExpSineSquared, stationary.ExpSquared),
    *(stationary.Matern32, stationary.Matern52, stationary.RationalQuadratic),
    *(distance.L1Distance, distance.L2Distance),
)
_TRANSFORMS: tuple[type, ...] = (
    *(tinygp.transforms.Cholesky, tinygp.transforms.Linear),
    *(tinygp.transforms.Subspace, tinygp.transforms.Transform),
)
_RESERVED = ("streamgp.", "tinygp.", "paramax.")

_things: dict[str, Any] = {
    "paramax.NonTrainable": paramax.NonTrainable,
    **{f"streamgp.{cls.__name__}": cls for cls in _OURS},
    **{f"tinygp.{cls.__name__}": cls for cls in _TINYGP},
    **{f"tinygp.transforms.{cls.__name__}": cls for cls in _TRANSFORMS},
}
_names: dict[int, str] = {id(thing): name for name, thing in _things.items()}


@overload
def register(thing: T, *, name: str | None = None) -> T: ...
@overload
def register(thing: None = None, *, name: str | None = None) -> Callable[[T], T]: ...
def register(thing: Any = None, *, name: str | None = None) -> Any:
    """Let files hold a class or function of your own, by its name; also as a decorator.

    Do it wherever such a model is saved and wherever it is loaded: the file has the name and the
    fields, not the code. `name` is another name than the thing's own.

    Example:
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
    _things[chosen] = thing
    _names[id(thing)] = chosen
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
    """The class or function that a file means."""
    if name not in _things:
        raise FileError(
            problem(
                f"{name!r} among the names that are known here",
                "none such",
                "Import the module that defines it, and `streamgp.register` it, before loading.",
            )
        )
    return _things[name]


def is_ours(cls: type) -> bool:
    return cls in _OURS
