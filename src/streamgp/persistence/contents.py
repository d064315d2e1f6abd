"""The inside of a file: everything that a model's next update depends on, and nothing else."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.axes import Axis, input_names
from streamgp.errors import FileError, problem
from streamgp.inducing import Fixed, as_given, as_strategy
from streamgp.inducing.placement import Placer
from streamgp.inference.learner import Learner
from streamgp.inference.memory import Memory
from streamgp.inference.past import Past, empty
from streamgp.inference.sites import Site
from streamgp.inference.state import State
from streamgp.model.specification import Specification
from streamgp.online.batch_update import Updater
from streamgp.online.forgetting import Forgetting
from streamgp.online.progress import Progress
from streamgp.parameters import Module, Node, free_size
from streamgp.persistence.container import Document, Tensors, seal, unseal
from streamgp.persistence.values import decode, encode


class Contents(NamedTuple):
    """The parts of a model that a file holds.

    Attributes:
        updater: How the model works.
        progress: How far it has come.
        notes: The user's own.
        bookkeeping: What a program that feeds the model has to know when it goes on.
    """

    updater: Updater
    progress: Progress
    notes: dict[str, Any]
    bookkeeping: dict[str, Any]


def pack(
    updater: Updater, progress: Progress, notes: dict[str, Any], bookkeeping: dict[str, Any]
) -> bytes:
    """A model as bytes. What could not be read again is not written."""
    with _fitting("a model", "Compare its settings with what their documentation asks for."):
        _check(updater, progress)
    tensors: Tensors = {}
    setup = updater.specification
    parts = {
        "channels": dict(setup.channels),
        "latents": setup.latents,
        "mixing": dict(setup.mixing),
        "seed": setup.seed,
        "scale": setup.scale,
        "plain": setup.plain,
        "mean": setup.mean,
        "learner": updater.learner,
        "inducing": as_given(updater.placer.strategy),
        "forgetting": updater.forgetting,
        "batch_rows": updater.batch_rows,
        "progress": progress,
        "notes": notes,
    }
    if bookkeeping:
        parts["bookkeeping"] = bookkeeping
    contents = {name: encode(part, name, tensors) for name, part in parts.items()}
    return seal(contents, tensors)


def unpack(data: bytes) -> Contents:
    """A model's parts from its bytes. No code is taken from them."""
    with _fitting("a file", "Take another copy of the file."):
        contents, tensors = unseal(data)
        built = _build(contents, tensors)
        _check(built.updater, built.progress)
        _require(isinstance(built.notes, dict), "notes by name")
        _require(isinstance(built.bookkeeping, dict), "bookkeeping by name")
    return built


@contextlib.contextmanager
def _fitting(what: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # a file may hold anything, and a user's class check for anything
        reason = f"one where they do not ({type(error).__name__}: {error})"
        raise FileError(problem(f"{what} whose parts fit together", reason, remedy)) from error


def _build(contents: Document, tensors: Tensors) -> Contents:
    # Parts that the first files did not have.
    gained: Document = {"scale": True, "notes": {}, "bookkeeping": {}}
    parts = gained | {name: decode(part, tensors) for name, part in contents.items()}
    asked = ("channels", "latents", "mixing", "seed", "scale", "plain", "mean")
    specification = Specification(**{name: parts[name] for name in asked})
    learner = parts["learner"]
    placer = Placer(as_strategy(parts["inducing"]), learner)
    updater = Updater(specification, placer, learner, parts["forgetting"], parts["batch_rows"])
    return Contents(updater, _with_axes(parts["progress"]), parts["notes"], parts["bookkeeping"])


def _with_axes(progress: Progress) -> Progress:
    """The first files did not say what inputs are: they were numbers."""
    if progress.state is None or progress.schema.axes:
        return progress
    axes = (Axis(),) * progress.state.points[0].shape[1]
    return dataclasses.replace(progress, schema=dataclasses.replace(progress.schema, axes=axes))


# -- do the parts fit each other? --------------------------------------------------------------


def _check(updater: Updater, progress: Progress) -> None:
    setup, strategy = updater.specification, updater.placer.strategy
    _require(isinstance(updater.learner, Learner), "a learner")
    _require(isinstance(updater.forgetting, Forgetting), "a rule of forgetting")
    _require(isinstance(progress, Progress), "the progress made")
    _require(isinstance(setup.mixing, dict), "mixing weights by channel")
    if isinstance(strategy, Fixed):
        _require(Fixed(strategy.points) == strategy, "inducing points")
    _require(_is_count(updater.batch_rows, least=1), "a number of rows")
    _require(_is_count(setup.seed), "a seed")
    _require(type(setup.plain) is bool, "whether the kernel's variance is learned")
    _require(set(setup.channels) == set(progress.seen), "counts of every channel")
    _check_progress(progress)
    if progress.state is not None:
        _check_state(progress.state, updater, progress.schema.axes)


def _check_progress(progress: Progress) -> None:
    counts = (*progress.seen.values(), progress.updates, progress.learned_at)
    begun = progress.state is not None
    _require(all(_is_count(count) for count in counts), "counts that are not negative")
    _require(begun == (progress.updates > 0) == (progress.total > 0), "a state once there is data")
    _require(progress.learned_at <= progress.total, "no more learned than seen")
    _require(begun == bool(np.isfinite(progress.latest)), "the latest input")
    _require(set(progress.watches) <= set(progress.seen), "watches of channels")
    _require(not any(w.variance < 0 for w in progress.watches.values()), "spreads of scores")


def _check_state(state: State, updater: Updater, axes: Sequence[Axis]) -> None:
    """The state has the structure and the shapes of one that the specification makes."""
    specification, model, sizes = updater.specification, state.model, [len(z) for z in state.points]
    widths = {z.shape[1] for z in state.points if z.ndim == 2}
    _require(len(widths) == 1 and all(z.ndim == 2 for z in state.points), "inducing points")
    for channel, likelihood in zip(model.channels, specification.channels.values(), strict=True):
        _require(type(channel.likelihood) is type(likelihood), "each channel's own likelihood")
        _require(channel.likelihood.latents == likelihood.latents, "each channel's likelihood")
    _require(widths.pop() == len(axes), "an axis for every input column")
    prototype = specification.prototype(input_names(axes))
    _require(_shapes(model) == _shapes(prototype), "hyperparameters of the specification")
    _require(len(sizes) == sum(model.draws), "inducing points of every latent function")
    factorised = updater.learner.factorised
    blank = empty(model.outputs, sizes, model.basis_size, factorised=factorised)
    theta = free_size(model)
    found = [a.shape for a in state.past.arrays()]
    _require(found == [a.shape for a in blank.arrays()], "a past of that size")
    _require(state.heard.shape == (len(model.channels),), "counts of every channel")
    if state.merged is not None:
        lengths = [*sizes, model.basis_size * len(model.outputs.channel)]
        lengths = lengths if factorised else [sum(lengths)]
        found = [a.shape for a in (*state.merged.linear, *state.merged.precision)]
        _require(found == [(n,) for n in lengths] + [(n, n) for n in lengths], "a merged site")
    remembered = state.memory.gradient.shape, state.memory.precision.shape
    _require(remembered == ((theta,), (theta, theta)), "a memory of that size")
    _require(_is_double(state) and state.is_finite(), "finite numbers in the state")


def _is_double(state: State) -> bool:
    """Whether every number is finite and of double precision."""
    parts = (state.model, state.points, state.past, state.memory, state.heard, state.merged)
    arrays = [array for array in _arrays(parts) if array.dtype.kind == "f"]
    return all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays)


def _arrays(tree: Any) -> Iterator[np.ndarray]:
    """Every array in a tree of modules, parameters and tuples."""
    if isinstance(tree, np.ndarray | np.generic):
        yield np.asarray(tree)
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _arrays(part)
    elif isinstance(tree, Node | Module | Site | Past | Memory):
        for field in dataclasses.fields(tree):  # type: ignore[arg-type]
            yield from _arrays(getattr(tree, field.name))


def _shapes(tree: Any) -> Any:
    """What two models have in common where all that may differ is real numbers."""
    if isinstance(tree, np.ndarray | np.generic) and tree.dtype.kind == "f":
        return tree.shape
    if isinstance(tree, np.ndarray):
        return tree.shape, tree.tobytes()
    if isinstance(tree, tuple):
        return tuple(map(_shapes, tree))
    if isinstance(tree, Node | Module):
        own = dataclasses.fields(tree)  # type: ignore[arg-type]
        return type(tree), tuple(_shapes(getattr(tree, field.name)) for field in own)
    return tree


def _is_count(value: Any, least: int = 0) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= least


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"expected {what}")
