"""What one update does with its batch, on a chain: E and M steps."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.data.batch import Batch, Rows
from streamgp.inference.alternating import alternated
from streamgp.inference.asking import Asking
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.bounds import expected_log_density, site_bound
from streamgp.inference.chain.evidence import Past
from streamgp.inference.chain.last_interval import meeting
from streamgp.inference.chain.objective import ChainObjective
from streamgp.inference.chain.open_rows import first_sites_beside, marginals_of_some
from streamgp.inference.chain.segments import joined
from streamgp.inference.chain.setting import ChainSetting
from streamgp.inference.chain.state import ChainState
from streamgp.inference.e_step import Fit, e_step, exact_sites, first_sites, no_sites
from streamgp.inference.likelihood_memory import is_remembered, needs_memory
from streamgp.inference.m_step import maximising
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites
from streamgp.inference.trust import trusted
from streamgp.inference.vem import VEM, Options, heard_with
from streamgp.model.multitask import MultiTaskGP, of_groups
from streamgp.parameters import free_gradient, free_vector, unwrap, with_free

_NOTHING = 3e-4  # nats of all data together: M steps end at a smaller gain
_FOLLOWING = 10  # evaluations of the objective in rounds after the first


class Trial(NamedTuple):
    """The state before the batch under some hyperparameters, and the batch that meets it."""

    state: ChainState
    setting: ChainSetting | None  # none if there are no rows


class Learned(NamedTuple):
    """How far learning has come: hyperparameters, the fit, and counts of the work.

    There is no fit where there are no rows, or where the sites of all rows are exact.
    """

    trial: Trial
    fit: Fit | None
    e_rounds: int
    m_evaluations: int


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
    """A batch that meets a state.

    Attributes:
        state: What is known before.
        rows: The state's open rows, and new ones after them.
        options: How E steps are made.
    """

    state: ChainState
    rows: Rows
    options: Options

    @functools.cached_property
    def batch(self) -> Batch:
        """The rows, sorted."""
        return self.state.model.batch(self.rows)

    @functools.cached_property
    def is_new(self) -> Bool[np.ndarray, " N"]:
        """Which rows were not open before, in the order in which they came."""
        held = self.state.open
        return np.arange(self.rows.size) >= (0 if held is None else held.size)

    @functools.cached_property
    def new(self) -> Batch:
        """The new rows alone."""
        if self.state.open is None:
            return self.batch
        return self.state.model.batch(self.rows.take(self.is_new))

    def trial(self, wrapped: MultiTaskGP) -> Trial:
        """What these hyperparameters imply."""
        state = self.state
        if wrapped is not state.model:
            state = state.replace(model=wrapped)
        if not self.batch.size:
            return Trial(state, None)
        return Trial(state, meeting(state.known, state.plain, self.batch))

    @functools.cached_property
    def heard(self) -> Float[np.ndarray, " D"]:
        """The observations of each channel, past and new."""
        return heard_with(self.state.heard, self.new)

    def before(self, setting: ChainSetting) -> tuple[Marginals, float]:
        """q(f) of the new rows, and the bound of all that is known, before them."""
        held, batch = self.state.open, self.batch
        if held is None:
            return setting.before[1], self.state.known.weights.log_evidence
        sites = held.sites(batch)
        posterior, at_rows = setting.conditioned(sites)
        of_new = marginals_of_some(batch, at_rows, self.is_new, self.new)
        open_ = self.state.model.batch(held.rows)
        of_open = marginals_of_some(batch, at_rows, ~self.is_new, open_)
        bound = site_bound(
            batch, expected_log_density(setting.model, open_, of_open), sites, posterior, at_rows
        )
        return of_new, bound

    def _first_sites(self, setting: ChainSetting) -> RowSites:
        """The sites that rows begin with."""
        held = self.state.open
        if held is None:
            return first_sites(setting)
        sites, is_held = held.sites(self.batch), ~self.is_new[self.batch.order]
        return first_sites_beside(setting, sites, setting.conditioned(sites)[1], is_held)

    def learn(self, trial: Trial, rule: VEM | None) -> Asking[Learned]:
        """Alternate E and M steps from a trial on, ending with an E step.

        Where every channel is conjugate one M step is enough: the bound is then collapsed.
        """
        setting = trial.setting
        if setting is None or self.is_exact:
            evaluations = 0
            if rule is not None:
                rows = None if setting is None else exact(setting)
                trial, evaluations = yield from self._m(trial, rows, None, rule.evaluations)
            return Learned(trial, None, 0, evaluations)
        rows = self._first_sites(setting)
        return Learned(*(yield from alternated(self, trial, rows, _evaluations(rule))))

    @functools.cached_property
    def is_exact(self) -> bool:
        """Whether sums tell all that rows say, so that no E step is needed."""
        return self.state.plain.conjugate and not needs_memory(self.state.model)

    @property
    def tolerance(self) -> float:
        """The gain of the bound, in nats, below which an E step ends."""
        return self.options.e_tolerance

    def e(self, trial: Trial, rows: RowSites, tolerance: float) -> tuple[Fit, int]:
        """A fit from these sites on, and how many rounds it took."""
        setting = trial.setting
        assert setting is not None
        return e_step(setting, rows, rounds=self.options.e_rounds, tolerance=tolerance)

    def m(self, trial: Trial, fit: Fit, evaluations: int) -> Asking[tuple[Trial, int]]:
        """Hyperparameters that a fit thinks better, and how many evaluations it took."""
        return self._m(trial, fit.rows, fit.marginals, evaluations)

    def worth(self, trial: Trial, fit: Fit) -> float:
        """The bound of all data, with what is believed of hyperparameters beside it."""
        model, totals = trial.state.model, trial.state.totals
        beside = trial.state.mixing.reading.beside(totals)
        return fit.bound + beside + self._beliefs(model).value(free_vector(model))

    def _beliefs(self, wrapped: MultiTaskGP) -> Beliefs:
        state, total = self.state, float(np.sum(self.heard))
        return Beliefs.of(wrapped, state.model, state.memory, self.heard, new=total, past=0.0)

    def _m(
        self, trial: Trial, rows: RowSites | None, at_rows: Marginals | None, evaluations: int
    ) -> Asking[tuple[Trial, int]]:
        """Hyperparameters from all data: the past, and the rows with these sites."""
        past, wrapped = self._past_with(trial, rows, at_rows), trial.state.model
        beliefs = self._beliefs(wrapped)
        more = None
        if at_rows is not None:
            more = functools.partial(self._of_likelihoods, at_rows=at_rows)
        objective = ChainObjective(past, wrapped, beliefs, more)
        start, gain = free_vector(wrapped), _NOTHING / max(float(np.sum(self.heard)), 1.0)
        best, count = yield from maximising(objective, start, evaluations=evaluations, gain=gain)
        return self.trial(with_free(wrapped, best)), count

    def _past_with(self, trial: Trial, rows: RowSites | None, at_rows: Marginals | None) -> Past:
        """What all data said, joined for passes over the whole chain."""
        state, setting = trial.state, trial.setting
        if setting is None or rows is None:
            return Past(joined(state.segments), state.totals)
        kept = rows if at_rows is None else trusted(state.model, setting, rows, at_rows, most=1.0)
        window = setting.window
        segments = [
            *state.segments[: window.first],
            window.segment.with_rows(setting.said(kept)),
            *state.segments[window.stop :],
        ]
        between = setting.seen.between
        totals = state.totals.with_rows(setting.model, self.batch, kept, between)
        return Past(joined(segments), totals)

    def _of_likelihoods(
        self, wrapped: MultiTaskGP, at_rows: Marginals
    ) -> tuple[float, Float[np.ndarray, " T"]]:
        """Σ E_q[log p] of rows in parameters of likelihoods that sums cannot tell, q held."""
        channels: list[dict[str, Any]] = [{"likelihood": {}} for _ in wrapped.channels]
        value, model = 0.0, unwrap(wrapped)
        for group, likelihood, mean, covariance in of_groups(
            model, self.batch, at_rows.mean, at_rows.covariance
        ):
            if is_remembered(wrapped.channels[group.channel].likelihood):
                value += float(np.sum(likelihood.expected(group.y, mean, covariance).value))
                by = likelihood.expected_parameter_gradient(group.y, mean, covariance)
                channels[group.channel]["likelihood"] = by
        return value, free_gradient(wrapped, {"channels": tuple(channels)})


def _evaluations(rule: VEM | None) -> list[int]:
    """How many each M step may make: later ones only follow sites that have moved a little."""
    if rule is None:
        return []
    return [rule.evaluations, *[min(_FOLLOWING, rule.evaluations)] * (rule.rounds - 1)][
        : rule.rounds
    ]


def exact(setting: ChainSetting) -> RowSites:
    """The sites of rows whose channels are all conjugate."""
    return exact_sites(setting, no_sites(setting))
