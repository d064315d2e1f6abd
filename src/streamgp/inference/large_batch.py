"""Large batches: the E step of a batch of which only a part is in memory at a time.

The bound needs the rows' sites only in sum (λ, Λ), beside the expected log density of each row. A
pass over the parts at some q therefore gives that expectation, and the sum of the sites to which
the natural gradient leads from there. No site of a row is kept from one pass to the next: sites
follow from the q at which they were taken, and the last pass computes them again.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from streamgp.data.batch import Rows
from streamgp.inference.bounds import expected_log_density
from streamgp.inference.e_step import DenseSetting, Fit, climb, curvature
from streamgp.inference.posterior import Marginals, Posterior, add, condition, marginals
from streamgp.inference.sites import RowSites, Site, aggregate, times
from streamgp.inference.state import State
from streamgp.inference.vem import Episode, Learned, Options, Trial
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import solve_lower

_LEAST = 1e-9  # weight of an origin in the sites: one with less is let go


def is_exact_in_parts(model: MultiTaskGP, rows: Rows) -> bool:
    """Whether parts that are learned one after the other need not be revised.

    So it is for conjugate rows: no site depends on q.
    """
    channels = np.unique(rows.channel)
    return all(model.channels[d].likelihood.conjugate for d in channels)


class LargeFit(NamedTuple):
    """The sites of all rows, in sum, and all that follows from them.

    Attributes:
        said: What the rows say of v together.
        origins: The q where their sites come from: each is the weighted sum of those taken there.
        posterior: q(v) with what was carried.
        target: What the rows say after a whole step.
        bound: The bound.
    """

    said: Site
    origins: tuple[tuple[float, Posterior], ...]
    posterior: Posterior
    target: Site
    bound: float


@dataclasses.dataclass(frozen=True, eq=False)
class LargeBatch:
    """Parts of a batch that together meet a state, at its points and hyperparameters."""

    state: State
    parts: Iterable[Rows]
    options: Options

    # -- the E step ------------------------------------------------------------------------------

    def fitted(self, guess: Posterior) -> tuple[LargeFit, int]:
        """The E step of all rows from a guess of q(v) on, and how many rounds it took."""
        _, target = self._pass(guess)
        return climb(
            self._fit(target, ((1.0, guess),)),
            self._moved,
            rounds=self.options.e_rounds,
            tolerance=self.options.e_tolerance,
        )

    def _fit(self, said: Site, origins: tuple[tuple[float, Posterior], ...]) -> LargeFit:
        posterior = condition(self.state.site + said)
        expected, target = self._pass(posterior)
        bound = expected + posterior.log_evidence - _expected_log_site(said, posterior)
        return LargeFit(said, origins, posterior, target, bound)

    def _moved(self, fit: LargeFit, step: float) -> LargeFit:
        before = [((1 - step) * weight, own) for weight, own in fit.origins]
        before = [(weight, own) for weight, own in before if weight > _LEAST]
        return self._fit(fit.said.toward(fit.target, step), (*before, (step, fit.posterior)))

    def _pass(self, origin: Posterior) -> tuple[float, Site]:
        """Σ E_q[log p(y|f)] over all rows, and the sum of the sites that are taken there."""
        expected, total = 0.0, None
        for _, trial in self._trials():
            model, batch, features, _ = trial.setting
            rows, at_rows = _sites(trial.setting, origin)
            expected += expected_log_density(model, batch, at_rows)
            said = aggregate(batch, rows, features)
            total = said if total is None else total + said
        assert total is not None
        return expected, total

    def _trials(self) -> Iterator[tuple[Episode, Trial]]:
        """Each part with its features, which are gone when the next one comes."""
        for rows in self.parts:
            episode = Episode(self.state, self.state.model.batch(rows), self.options)
            yield episode, episode.trial(self.state.model)

    # -- what is kept ----------------------------------------------------------------------------

    def added(
        self, fit: LargeFit, settled: Callable[[State], State], *, remember: bool, kernels: bool
    ) -> State:
        """The state after the rows.

        Args:
            fit: Of all rows.
            settled: Joins cells of a state if it has too many.
            remember: Whether to keep how the rows depend on hyperparameters.
            kernels: Whether to keep how they depend on the kernels, too.
        """
        known = state = self.state
        for part, trial in self._trials():
            features, batch = trial.setting.features, part.batch
            rows = _mixed_sites(trial.setting, fit)
            at_rows = marginals(batch, fit.posterior, features)
            own = Fit(rows, fit.posterior, at_rows, fit.bound)
            trial = trial._replace(past=known.past)  # the parts before this one are in it
            learned, episode = Learned(trial, own, 0, 0), dataclasses.replace(part, state=known)
            memory = episode.remembered(learned, kernels=kernels) if remember else known.memory
            past, cells = episode.told(learned)
            known = known.replace(past=past, memory=memory, heard=episode.heard, cells=cells)
            vars(known).update(plain=state.plain, prior=state.prior, reading=state.reading)
            if known.is_finite():
                known = settled(known)
        return known


def _sites(setting: DenseSetting, origin: Posterior) -> tuple[RowSites, Marginals]:
    """The sites of a part's rows after a whole natural step from there, and q(f) before it."""
    model, batch, features, _ = setting
    at_rows = marginals(batch, origin, features)
    gradient, precision = curvature(model, batch, at_rows.mean, at_rows.covariance)
    return RowSites(gradient + times(batch, precision, at_rows.centred), precision), at_rows


def _mixed_sites(setting: DenseSetting, fit: LargeFit) -> RowSites:
    """The sites of a part's rows in a fit."""
    (weight, origin), *others = fit.origins
    linear, precision = _sites(setting, origin)[0]
    linear, precision = weight * linear, tuple(weight * p for p in precision)
    for weight, origin in others:
        more = _sites(setting, origin)[0]
        linear = linear + weight * more.linear
        precision = add(precision, tuple(weight * p for p in more.precision))
    return RowSites(linear, precision)


def _expected_log_site(said: Site, posterior: Posterior) -> float:
    """E_q[log t(v)] of a site, which is that of the rows' sites that it is the sum of."""
    mean, chol = posterior.mean, posterior.chol
    spread = solve_lower(chol, solve_lower(chol, said.precision).T)  # its trace is that of ΛΣ
    quadratic = mean @ said.precision @ mean + np.trace(spread)
    return float(said.linear @ mean - 0.5 * quadratic)
