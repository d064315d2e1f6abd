"""The inside of a file: everything that a model's next update depends on, and nothing else."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgp.data.axes import Axis, input_names
from streamgp.errors import FileError, problem
from streamgp.inducing import Fixed, as_given, as_strategy
from streamgp.inducing.engines import Engines
from streamgp.inference.dense.state import DenseState
from streamgp.inference.over_time.state import RowState
from streamgp.inference.sparse.absorbed import Absorbed
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.state import State
from streamgp.model.means import Mean
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.online.batch_update import Updater
from streamgp.online.calibration import COVERED, Calibration
from streamgp.online.forgetting import Forgetting
from streamgp.online.progress import Progress
from streamgp.parameters import Module, Node
from streamgp.persistence.container import Document, Tensors, seal, unseal
from streamgp.persistence.requirements import require
from streamgp.persistence.row_states import Trusted, check_rows
from streamgp.persistence.values import attributes, decode, encode


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
    with writing():
        document, tensors = encoded(Contents(updater, progress, notes, bookkeeping))
        decoded(document, tensors)
    return seal(document, tensors)


def unpack(data: bytes) -> Contents:
    """A model's parts from its bytes. No code is taken from them."""
    with fitting("a file", "Take another copy of the file."):
        return decoded(*unseal(data))


def encoded(whole: Contents) -> tuple[Document, Tensors]:
    """A model's parts as JSON and arrays."""
    tensors: Tensors = {}
    updater, setup = whole.updater, whole.updater.specification
    strategy = updater.engines.strategy
    parts = {
        "channels": dict(setup.channels),
        "latents": setup.latents,
        "mixing": dict(setup.mixing),
        "seed": setup.seed,
        "scale": setup.scale,
        "plain": setup.plain,
        "mean": setup.mean,
        "seasons": setup.seasons,
        "over_time": setup.over_time,
        "learner": updater.engines.settings,
        "inducing": None if strategy is None else as_given(strategy),
        "engine": updater.engines.choice,
        "keep": updater.engines.keep,
        "forgetting": updater.forgetting,
        "outliers": updater.outliers,
        "progress": whole.progress,
        "notes": whole.notes,
        "bookkeeping": whole.bookkeeping,
    }
    return {name: encode(part, name, tensors) for name, part in parts.items()}, tensors


def decoded(contents: Document, tensors: Tensors) -> Contents:
    """A model's parts, which fit together, from JSON and arrays."""
    whole = build(contents, tensors)
    check(whole)
    return whole


def writing() -> contextlib.AbstractContextManager[None]:
    """A block that writes a model and reads it back, so that what is kept can be read again."""
    return fitting("a model", "Compare its settings with what their documentation asks for.")


@contextlib.contextmanager
def fitting(what: str, remedy: str) -> Iterator[None]:
    """Whatever goes wrong inside means that parts do not fit together."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # a file may hold anything, and a user's class check for anything
        reason = f"one where they do not ({type(error).__name__}: {error})"
        raise FileError(problem(f"{what} whose parts fit together", reason, remedy)) from error


def build(contents: Document, tensors: Tensors) -> Contents:
    """A model's parts from JSON and arrays; whether they fit together is not looked at."""
    parts = {name: decode(part, tensors) for name, part in contents.items()}
    asked = (
        "channels",
        "latents",
        "mixing",
        "seed",
        "scale",
        "plain",
        "mean",
        "seasons",
        "over_time",
    )
    specification = Specification(**{name: parts[name] for name in asked})
    strategy = None if parts["inducing"] is None else as_strategy(parts["inducing"])
    engines = Engines(parts["engine"], strategy, parts["learner"], parts["keep"])
    rules = (parts["forgetting"], parts["outliers"])
    updater = Updater(specification, engines, *rules)
    return Contents(updater, parts["progress"], parts["notes"], parts["bookkeeping"])


# -- do the parts fit each other? --------------------------------------------------------------


def check(whole: Contents, trusted: Trusted = frozenset()) -> None:
    """Refuse parts that do not fit together."""
    updater, progress = whole.updater, whole.progress
    setup, strategy = updater.specification, updater.engines.strategy
    require(isinstance(whole.notes, dict), "notes by name")
    require(isinstance(whole.bookkeeping, dict), "bookkeeping by name")
    require(isinstance(updater.engines.settings, Learner), "a learner")
    require(isinstance(updater.forgetting, Forgetting), "a rule of forgetting")
    require(isinstance(progress, Progress), "the progress made")
    require(isinstance(setup.mixing, dict), "mixing weights by channel")
    if isinstance(strategy, Fixed):
        require(Fixed(strategy.points) == strategy, "inducing points")
    require(_is_count(setup.seed), "a seed")
    require(type(setup.plain) is bool, "whether the kernel's variance is learned")
    require(set(setup.channels) == set(progress.seen), "counts of every channel")
    _check_progress(progress)
    for name, known in progress.horizons.items():
        require(known.is_sound(setup.channels[name].latents), "forecasts in finite numbers")
    if progress.state is not None:
        _check_state(progress.state, updater, progress.schema.axes, trusted)


def _check_progress(progress: Progress) -> None:
    counts = (*progress.seen.values(), progress.updates, progress.learned_at)
    begun = progress.state is not None
    require(all(_is_count(count) for count in counts), "counts that are not negative")
    require(begun == (progress.updates > 0) == (progress.total > 0), "a state once there is data")
    require(progress.learned_at <= progress.total, "no more learned than seen")
    require(begun == bool(np.isfinite(progress.latest)), "the latest input")
    require(set(progress.watches) <= set(progress.seen), "watches of channels")
    require(not any(w.variance < 0 for w in progress.watches.values()), "spreads of scores")
    require(set(progress.calibrations) <= set(progress.seen), "calibrations of channels")
    records = progress.calibrations.values()
    require(all(_is_record(record) for record in records), "calibrations in finite numbers")
    require(set(progress.horizons) <= set(progress.seen), "horizons of channels")
    places = [place for own in progress.places.values() for place in own]
    require(bool(np.all(np.isfinite(places))), "finite places of the first rows")


def _is_record(record: Calibration) -> bool:
    """Whether a calibration has the parts of one that rows have made."""
    counts = record.rows, record.far
    averages = (record.nlpd, record.crps, *record.coverage)
    sound = all(np.isfinite(average).all() and average.weight >= 0 for average in averages)
    whole = all(_is_count(count) for count in counts) and len(record.coverage) == len(COVERED)
    waits = record.waiting.dtype == np.float64 and record.waiting.shape[1:] == (6,)
    return sound and whole and waits and record.tracker.is_finite()


def _check_state(
    state: State | DenseState | RowState, updater: Updater, axes: Sequence[Axis], trusted: Trusted
) -> None:
    """The state has the structure and the shapes of one that the specification makes."""
    _check_model(state.model, updater.specification, axes)
    require(state.heard.shape == (len(state.model.channels),), "counts of every channel")
    require(bool(np.all(state.heard >= 0)), "counts that are not negative")
    if isinstance(state, State):
        _check_sparse(state, axes)
    else:
        check_rows(state, axes, trusted)


def _check_sparse(state: State, axes: Sequence[Axis]) -> None:
    widths = {z.shape[1] for z in state.points if z.ndim == 2}
    require(len(widths) == 1 and all(z.ndim == 2 for z in state.points), "inducing points")
    require(widths.pop() == len(axes), "an axis for every input column")
    require(len(state.points) == sum(state.model.draws), "points of every latent function")
    _check_sizes(state)
    require(_is_double(state) and state.is_finite(), "finite numbers in the state")


def _check_model(model: MultiTaskGP, specification: Specification, axes: Sequence[Axis]) -> None:
    for channel, likelihood in zip(model.channels, specification.channels.values(), strict=True):
        require(type(channel.likelihood) is type(likelihood), "each channel's own likelihood")
        require(channel.likelihood.latents == likelihood.latents, "each channel's likelihood")
    prototype = specification.prototype(input_names(axes), axes)
    require(_shapes(model) == _shapes(prototype), "hyperparameters of the specification")


def _check_sizes(state: State) -> None:
    blank = Absorbed.none(state.model, [len(z) for z in state.points])
    require(_sizes(state.absorbed.arrays()) == _sizes(blank.arrays()), "sites of that size")


def _sizes(arrays: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays]


def _is_double(state: State) -> bool:
    """Whether every number is finite and of double precision; a model may have whole ones too."""
    of_model = [array for array in _arrays(state.model) if array.dtype.kind == "f"]
    numbers = [*of_model, *_arrays((state.points, state.absorbed, state.heard))]
    return all(array.dtype == np.float64 and np.isfinite(array).all() for array in numbers)


def _arrays(tree: Any) -> Iterator[np.ndarray]:
    """Every array in a tree of modules, parameters and tuples."""
    if isinstance(tree, np.ndarray | np.generic):
        yield np.asarray(tree)
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _arrays(part)
    elif isinstance(tree, Node | Module | Absorbed):
        for field in dataclasses.fields(tree):  # type: ignore[arg-type]
            yield from _arrays(getattr(tree, field.name))


def _shapes(tree: Any) -> Any:
    """What two models have in common where all that may differ is real numbers."""
    if isinstance(tree, np.ndarray | np.generic) and tree.dtype.kind == "f":
        return tree.shape
    if isinstance(tree, np.ndarray):
        return tree.shape, tree.tobytes()
    if isinstance(tree, float):  # how wide a prior is, which first data may say
        return float
    if isinstance(tree, tuple):
        return tuple(map(_shapes, tree))
    if isinstance(tree, Node | Module | Mean):
        own = attributes(tree)
        return type(tree), tuple(_shapes(own[name]) for name in sorted(own))
    return tree


def _is_count(value: Any, least: int = 0) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= least
