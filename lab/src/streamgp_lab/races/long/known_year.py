"""The year once more, under the hyperparameters that a model has at the end of it.

What a week loses by the end of the year has two causes: hyperparameters that suit the whole year
suit a week less than those that were learned up to it, and something may be forgotten. Here
hyperparameters are the same all along, so only the second is left.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import streamgp as sgp
from streamgp_lab.problem import Data, rows

Scores = list[dict[str, float]]  # negative log predictive densities, by week and channel


def known(
    model: sgp.ContinualGP, batches: Sequence[Data], asked: Sequence[Data]
) -> tuple[Scores, Scores]:
    """Scores of what is asked of each week, once it is learned and once all are.

    Args:
        model: It has the hyperparameters. What it has learned of the weeks is not used.
        batches: What is learned of each week, outliers as well.
        asked: What is held out of it.
    """
    assert model.state is not None
    core, names, when = model.learner, list(model.channels), []
    state = core.tempered(model.state, 0.0)
    for batch, unseen in zip(batches, asked, strict=True):
        state, _ = core.step(state, rows(names, batch), learn=False)
        when.append(_scores(core, state, names, unseen))
    return when, [_scores(core, state, names, unseen) for unseen in asked]


def _scores(core: Any, state: Any, names: list[str], data: Data) -> dict[str, float]:
    found = {}
    for name, (t, y) in data.items():
        number = names.index(name)
        at_rows = core.predict(state, t[:, None], number)
        likelihood = state.plain.channels[number].likelihood
        found[name] = -float(np.mean(likelihood.log_predictive(y, *at_rows)))
    return found
