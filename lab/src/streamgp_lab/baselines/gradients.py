"""Derivatives that several baselines need."""

from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import ByRows
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, prior_of


def log_prior(wrapped: MultiTaskGP) -> tuple[float, Float[np.ndarray, " T"]]:
    """The log density of the priors of all free parameters, and its gradient."""
    centre, width = prior_of(wrapped)
    deviation = (free_vector(wrapped) - centre) / width
    return -0.5 * float(deviation @ deviation), -deviation / width


def by_channels(
    model: MultiTaskGP,
    batch: Batch,
    by_rows: ByRows,
    by_loadings: tuple[Float[np.ndarray, "_ Q"], ...],
) -> list[dict[str, Any]]:
    """Derivatives by the parameters of each channel, from those by its loadings.

    They are zero for channels without rows.
    """
    found: list[dict[str, Any]] = [{"likelihood": {}} for _ in model.channels]
    for group, loadings in zip(batch.groups, by_loadings, strict=True):
        own = found[group.channel]
        own.update(model.channels[group.channel].by_loadings(loadings))
        own["likelihood"] = dict(by_rows.by_likelihood[group.channel])
    return found
