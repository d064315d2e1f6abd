"""Shared: one set of hyperparameters for a whole fleet, learned from all keys."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.errors import ConfigurationError, problem
from streamgp.fleet.population import Population
from streamgp.gp import ContinualGP
from streamgp.inference.m_step import maximise
from streamgp.inference.over_time.learner import evidence_of
from streamgp.inference.over_time.state import RowState
from streamgp.inference.vem import VEM
from streamgp.online.batch_update import Updater
from streamgp.parameters import Real, free_vector, nodes_of, prior_of, with_free
from streamgp.registry import storable

_MOST = 48  # keys that an M step looks at, drawn at random: they say enough
_FEWEST = 20  # observations of all keys, before anything is learned
_GROWTH = 2.0  # of all observations, between two M steps
_STILL = 0.01  # in log units: a move that is not worth reading the past anew


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
    """The hyperparameters of a fleet, and when they were learned.

    Attributes:
        rule: How they are learned.
        theta: All free parameters, in the units of learning; None before they are learned.
        learned_at: Observations of the fleet when they were learned.
        start: What new keys start from.
    """

    rule: VEM
    theta: Float[np.ndarray, " T"] | None = None
    learned_at: int = 0
    start: Population | None = None

    def is_due(self, observations: int) -> bool:
        """Whether enough has come since they were learned."""
        return observations >= max(_FEWEST, _GROWTH * self.learned_at)

    def learned(self, models: Mapping[Any, ContinualGP], observations: int) -> "Shared":
        """Learned from the data of all keys, or of some of them at random."""
        chosen = _chosen(models, observations)
        states = [state for model in chosen if isinstance(state := model.state, RowState)]
        if not states:
            return self
        begin = self.theta
        if begin is None:
            begin = np.median([free_vector(state.model) for state in states], axis=0)
        centre = np.median([prior_of(state.model)[0] for state in states], axis=0)
        told, total = list(map(evidence_of, states)), sum(s.count for s in states)

        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            there = with_free(states[0].model, theta)
            deviation = (theta - centre) / prior_of(there)[1]
            value, gradient = -0.5 * float(deviation @ deviation), -deviation / prior_of(there)[1]
            for own in told:
                more, by = own.evidence(theta)
                value, gradient = value + more, gradient + by
            return value / total, gradient / total

        theta = maximise(objective, begin, evaluations=self.rule.evaluations).point
        if self.theta is not None and np.max(np.abs(theta - self.theta)) < _STILL:
            return dataclasses.replace(self, learned_at=observations)
        start = _start(with_free(states[0].model, theta), chosen[0].channels)
        return Shared(self.rule, theta, observations, start)

    def adopted(self, model: ContinualGP) -> bool:
        """Let a model have the fleet's hyperparameters. Its past is then read under them.

        Returns:
            Whether it has them now. A model without data has none.
        """
        with model._changing() as version:
            state = version.progress.state
            if self.theta is None or not isinstance(state, RowState):
                return False
            if not np.array_equal(free_vector(state.model), self.theta):
                moved = state.replace(model=with_free(state.model, self.theta))
                now = dataclasses.replace(version.progress, state=moved)
                model._version = version._replace(progress=now)
            return True


def _start(model: Any, names: tuple[str, ...]) -> Population:
    """What new keys start from."""
    likelihoods = {
        name: channel.likelihood
        for name, channel in zip(names, model.channels, strict=True)
        if all(not isinstance(node, Real) for node in nodes_of(channel.likelihood))
    }
    return Population(0, model.kernels, likelihoods, {}, model.draws)


def _chosen(models: Mapping[Any, ContinualGP], seed: int) -> list[ContinualGP]:
    able = [model for model in models.values() if all(model.observations.values())]
    order = np.random.default_rng(seed).permutation(len(able))
    return [able[i] for i in order[:_MOST]]


def shared_by(updater: Updater) -> tuple[Shared, Updater]:
    """How hyperparameters are shared by models that an updater makes, which learn none alone."""
    engines = updater.engines
    rule = engines.settings.learning
    if rule is None or not engines.allows_chain:
        raise ConfigurationError(
            problem(
                "a model that learns and may be a chain, for `shared=True`",
                "learning=None" if rule is None else "one that is no chain",
                "Leave `learning`, `engine` and `inducing` as they are.",
            )
        )
    alone = dataclasses.replace(engines, settings=engines.settings.with_rule(None))
    return Shared(rule), dataclasses.replace(updater, engines=alone)


def check_is_chain(updater: Updater, names: tuple[str, ...], axes: tuple[Any, ...]) -> None:
    """Refuse to share hyperparameters of models that are no chains."""
    prototype = updater.specification.prototype(names, axes)
    if updater.engines.chosen(prototype).name != "chain":
        raise ConfigurationError(
            problem(
                "one input column and Markov kernels, for `shared=True`",
                f"{len(axes)} columns, and kernels "
                f"{', '.join(type(kernel).__name__ for kernel in prototype.kernels)}",
                "Leave `shared` out; `population=True` suits every model.",
            )
        )
