"""merge: models that learned different data from a common ancestor become one."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from streamgp.errors import ConfigurationError, problem
from streamgp.gp import ContinualGP
from streamgp.inference.combine import combine, said_since
from streamgp.numerics.blas_threads import on_one_blas_thread
from streamgp.online.progress import Progress


@on_one_blas_thread
def merge(ancestor: ContinualGP, models: Iterable[ContinualGP]) -> ContinualGP:
    """One model that knows what several models learned apart.

    All of them began as copies of the ancestor and learned different data since, at the same
    hyperparameters (`update(…, learn=False)`) and inducing points. What each of them was told since
    is added up. For channels with normal noise the result is that of one model that learned
    everything; for others it is close to that.

    Where rows are kept, models may have learned rows at any inputs; the result has the rows of
    all. They must have joined none since they were copies (`keep=None` makes sure of it). Inducing
    points must not change: `inducing=Fixed(points)` keeps them.

    Args:
        ancestor: The model that all of them were, with data.
        models: Its descendants. They are not changed.

    Returns:
        A new model. Its counts are of all data. The records of its scores (surprise, coverage) are
        those of the descendant with the most observations. Its `notes` are the ancestor's.

    Raises:
        ConfigurationError: If the ancestor has no data, or the models have different
            hyperparameters or points, or have joined rows.

    Examples:
        >>> import numpy as np, streamgp as sgp
        >>> first = sgp.ContinualGP(sgp.Gaussian())
        >>> x = np.linspace(0, 30, 90)
        >>> report = first.update(x[:30], np.sin(x[:30]))
        >>> parts = [sgp.from_bytes(first.to_bytes()) for _ in range(2)]
        >>> for model, rows in zip(parts, [slice(30, 60), slice(60, 90)]):
        ...     report = model.update(x[rows], np.sin(x[rows]), learn=False)
        >>> sgp.merge(first, parts).observations
        {'y': 90}
    """
    updater, before = ancestor._version
    progresses = [model._version.progress for model in models]
    if before.state is None:
        raise ConfigurationError(
            problem(
                "an ancestor with data, which has hyperparameters",
                repr(ancestor),
                "Update it with a first batch before it is copied.",
            )
        )
    for progress in progresses:
        _check_descends(progress, before)
    state = combine(before.state, [said_since(before.state, own.state) for own in progresses])
    merged = ContinualGP._begun(updater, _progress(before, progresses, state))
    merged.notes.update(ancestor.notes)
    return merged


def _progress(before: Progress, progresses: list[Progress], state: Any) -> Progress:
    """All counts together, and the records of the largest part."""
    largest = max([before, *progresses], key=lambda progress: progress.total)
    levels = dict(before.levels)
    for own in progresses:
        for name, level in own.levels.items():
            same = levels.setdefault(name, level) == level
            levels[name] = level if same else None
    return dataclasses.replace(
        largest,
        state=state,
        seen={
            name: count + sum(own.seen[name] - count for own in progresses)
            for name, count in before.seen.items()
        },
        updates=before.updates + sum(own.updates - before.updates for own in progresses),
        learned_at=before.learned_at,
        latest=max([before.latest, *(own.latest for own in progresses)]),
        levels=levels,
    )


def _check_descends(progress: Progress, before: Progress) -> None:
    """Refuse what cannot come from the ancestor."""
    known = progress.seen.keys() == before.seen.keys()
    more = known and all(progress.seen[name] >= count for name, count in before.seen.items())
    if not (more and progress.state is not None and progress.schema == before.schema):
        raise ConfigurationError(
            problem(
                "models that went on from the ancestor, with its channels and inputs",
                f"one with observations {dict(progress.seen)}",
                "Begin with copies of one model that has seen all its channels.",
            )
        )
