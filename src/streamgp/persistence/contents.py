"""The inside of a file: everything that a model's next update depends on, and nothing else."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from streamgp.data import inducing_bucket
from streamgp.data.axes import Axis
from streamgp.errors import FileError, problem
from streamgp.inducing import Fixed, as_given, as_strategy
from streamgp.inducing.placement import Placer
from streamgp.inference import memory
from streamgp.inference.learner import Learner, State
from streamgp.model.multitask import Generative
from streamgp.model.specification import Specification, as_arrays
from streamgp.online.batch_update import Updater
from streamgp.online.forgetting import Forgetting
from streamgp.online.progress import Progress
from streamgp.persistence.container import Document, Tensors, seal, unseal
from streamgp.persistence.values import Source, decode, encode


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
        "learner": updater.learner,
        "inducing": as_given(updater.placer.strategy),
        "forgetting": updater.forgetting,
        "batch_rows": updater.batch_rows,
        "progress": dataclasses.replace(progress, state=_uniform(progress.state)),
        "notes": notes,
    }
    if bookkeeping:
        parts["bookkeeping"] = bookkeeping
    contents = {name: encode(part, name, tensors) for name, part in parts.items()}
    return seal(contents, tensors)


def unpack(data: bytes) -> Contents:
    """A model's parts from its bytes. Nothing is compiled and no code is taken from them."""
    contents, tensors = unseal(data)
    with _fitting("a file", "Take another copy of the file."), jax.enable_x64(True):
        built = _build(contents, tensors)
        _check(built.updater, built.progress)
        _require(isinstance(built.notes, dict), "notes by name")
        _require(isinstance(built.bookkeeping, dict), "bookkeeping by name")
    return built


def _uniform(state: State | None) -> State | None:
    """The state with every number as a plain JAX array, so that equal models give equal bytes.

    Where a number has come from (a copy, a pickle, an update) decides otherwise how it is held.
    """
    with jax.enable_x64(True):
        return state if state is None else as_arrays(state)


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
    source = Source(tensors, jax.device_put(tensors))  # all at once: one by one is slow
    # Parts that the first files did not have.
    gained: Document = {"scale": True, "notes": {}, "bookkeeping": {}}
    parts = gained | {name: decode(part, source) for name, part in contents.items()}
    asked = ("channels", "latents", "mixing", "seed", "scale", "plain")
    specification = Specification(**{name: parts[name] for name in asked})
    learner = parts["learner"]
    placer = Placer(as_strategy(parts["inducing"]), learner)
    updater = Updater(specification, placer, learner, parts["forgetting"], parts["batch_rows"])
    return Contents(updater, _with_axes(parts["progress"]), parts["notes"], parts["bookkeeping"])


def _with_axes(progress: Progress) -> Progress:
    """The first files did not say what inputs are: they were numbers."""
    if progress.state is None or progress.schema.axes:
        return progress
    axes = (Axis(),) * progress.state.inducing.points.shape[-1]
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
        _check_state(progress.state, updater)


def _check_progress(progress: Progress) -> None:
    counts = (*progress.seen.values(), progress.updates, progress.learned_at)
    begun = progress.state is not None
    _require(all(_is_count(count) for count in counts), "counts that are not negative")
    _require(begun == (progress.updates > 0) == (progress.total > 0), "a state once there is data")
    _require(progress.learned_at <= progress.total, "no more learned than seen")
    _require(begun == bool(np.isfinite(progress.latest)), "the latest input")
    _require(set(progress.watches) <= set(progress.seen), "watches of channels")
    _require(not any(w.variance < 0 for w in progress.watches.values()), "spreads of scores")


def _check_state(state: State, updater: Updater) -> None:
    """The state has the structure, shapes and types of one that the setup makes."""
    _check_arrays(state)
    latents, slots, width = state.inducing.points.shape
    setup, model, mask = updater.specification, state.model, np.asarray(state.inducing.mask)
    for channel, likelihood in zip(model.channels, setup.channels.values(), strict=True):
        _require(type(channel.likelihood) is type(likelihood), "each channel's own likelihood")
        _require(channel.likelihood.latents == likelihood.latents, "each channel's likelihood")
    _require(
        _shapes(model) == _setup_shapes(_Recipe.of(setup, width)), "hyperparameters of the setup"
    )
    filled = np.arange(slots) < mask.sum(axis=1, keepdims=True)
    _require(mask.shape == (latents, slots) and bool(np.all(mask == filled)), "filled slots first")
    _require(slots == inducing_bucket(int(mask.sum(axis=1).max())), "slots for inducing points")
    _require(latents == sum(model.draws), "inducing points of every latent function")
    blocks, size = (latents, slots) if updater.learner.factorised else (1, latents * slots)
    theta = memory.trainable_size(model)
    found = [np.shape(leaf) for leaf in jax.tree.leaves((state.site, state.memory, state.count))]
    wanted = [(blocks, size), (blocks, size, size), (theta,), (theta, theta), ()]
    _require(found == wanted and state.energy.shape == (), "a site and a memory of that size")


def _check_arrays(state: State) -> None:
    for leaf in jax.tree.leaves(state):
        if eqx.is_inexact_array_like(leaf):
            double = isinstance(leaf, jax.Array) and leaf.dtype == np.float64
            _require(double and bool(np.isfinite(leaf).all()), "finite numbers in the state")
    _require(state.inducing.mask.dtype == bool, "a mask of inducing points")


def _shapes(model: Generative) -> tuple:
    """What two models have in common where all that may differ is real numbers."""
    leaves, structure = jax.tree.flatten(model)
    return structure, [
        np.shape(leaf) if eqx.is_inexact_array_like(leaf) else (type(leaf), np.shape(leaf))
        for leaf in leaves
    ]


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """All that the structure of a setup's models depends on."""

    key: tuple
    setup: Specification = dataclasses.field(compare=False)
    width: int

    @classmethod
    def of(cls, setup: Specification, width: int) -> "_Recipe":
        leaves, structure = jax.tree.flatten(
            (dict(setup.channels), setup.latents, dict(setup.mixing))
        )
        numbers = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)
        return cls((structure, numbers, tuple(setup.channels), setup.plain), setup, width)


@functools.lru_cache(maxsize=128)  # a stream of bytes is loaded again and again
def _setup_shapes(recipe: _Recipe) -> tuple:
    return _shapes(recipe.setup.prototype(recipe.width))


def _is_count(value: Any, least: int = 0) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= least


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"expected {what}")
