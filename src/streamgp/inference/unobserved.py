"""Inputs of a channel without observations, as a batch."""

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Batch, Rows
from streamgp.model.multitask import MultiTaskGP


def unobserved(model: MultiTaskGP, x: Float[np.ndarray, "N P"], channel: int) -> Batch:
    """Inputs of a channel without observations, as a batch."""
    width = model.channels[channel].likelihood.observation_dim
    where: Int[np.ndarray, " N"] = np.full(len(x), channel)
    return model.batch(Rows(x, np.full((len(x), width), np.nan), where))
