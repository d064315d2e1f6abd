"""Pool: when a fleet learns what its keys have in common, and from which of them."""

import dataclasses
from collections.abc import Hashable, Mapping

import numpy as np

from streamgp.fleet.population import Population, population
from streamgp.gp import ContinualGP
from streamgp.registry import storable

_FEWEST = 8  # keys that have learned, before anything is said of all
_ENOUGH = 20  # observations of a key that counts
_MOST = 40  # keys that are looked at, drawn at random
_GROWTH = 1.5  # of the number of times that keys have learned, between two looks


@storable
@dataclasses.dataclass(frozen=True)
class Pool:
    """How far a fleet has come in learning what its keys have in common.

    Attributes:
        learned: How often keys have learned hyperparameters.
        looked_at: The same when the population was last learned.
        population: What was found; None while there is too little.
    """

    learned: int = 0
    looked_at: int = 0
    population: Population | None = None

    def seen(self, models: Mapping[Hashable, ContinualGP]) -> "Pool":
        """Once a further key has learned hyperparameters; all keys are looked at now and then."""
        count = self.learned + 1
        if count < max(_FEWEST, _GROWTH * self.looked_at):
            return dataclasses.replace(self, learned=count)
        chosen = _chosen(models, count)
        if len(chosen) < _FEWEST:
            return dataclasses.replace(self, learned=count)
        states = [model.state for model in chosen if model.state is not None]
        found = population(chosen[0].learner, states, chosen[0].channels)
        return Pool(count, count, found or self.population)


def _chosen(models: Mapping[Hashable, ContinualGP], seed: int) -> list[ContinualGP]:
    """Some models of one engine with enough data, at random."""
    able = [
        model
        for model in models.values()
        if model._version.progress.learned_at >= _ENOUGH and all(model.observations.values())
    ]
    if not able:
        return []
    able = [model for model in able if type(model.state) is type(able[0].state)]
    order = np.random.default_rng(seed).permutation(len(able))
    return [able[i] for i in order[:_MOST]]
