"""Streaming sparse GPs (Bui, Nguyen and Turner, 2017), for one channel of any likelihood.

The method keeps a Gaussian over the inducing values `a` of the past. A new batch gets its own
inducing points `b`: some of the old ones and some of its inputs, moved by gradient together with
the hyperparameters. The past enters through the KL divergence at the old points. For q(b) that is
the site of `a`, seen through p(a | b, ψ_new), minus a term for the variance that `b` leaves open:

    L = E_q[log p(y|f)] − KL[q(b)‖p(b)] + E_q[log t(a)],  E_q[log t(a)] ∋ −½ tr Λ_a (K_aa − Q_aa)

For Gaussian noise this is the collapsed bound of their Eq. 9. Otherwise q(b) is found by natural
gradients instead of plain ones, which reach the same optimum of the same bound sooner.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Rows
from streamgp.inference.gradients import summed
from streamgp.kernels import RBF, Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.multitask import MultiTaskGP
from streamgp.model.specification import Specification
from streamgp.numerics.linalg import (
    NUGGET,
    cholesky_of_identity_plus,
    inverse_of,
    solve_lower,
    with_nugget,
)
from streamgp.parameters import free_gradient, free_vector, unwrap, with_free
from streamgp.prediction.prediction import Prediction
from streamgp_lab.baselines.core import (
    SampleScores,
    learned,
    literal_model,
    one_by_one,
    position,
    prediction,
)
from streamgp_lab.baselines.gradients import climbed, log_prior
from streamgp_lab.baselines.sparse import Expected, Function, Points, Seen, expected, mixed
from streamgp_lab.problem import Data, rows

_E_ROUNDS, _E_TOLERANCE = 50, 1e-4
_SMALLEST_STEP = 8.0**-8  # of a round
_ROUNDING = 1e-11  # relative: how far a bound may fall and still count as equal


class Site(NamedTuple):
    """exp(λᵀv − ½vᵀΛv), of whitened values."""

    linear: Float[np.ndarray, " M"]
    precision: Float[np.ndarray, "M M"]


class Kept(NamedTuple):
    """All that is kept of the past: a site at inducing points."""

    model: MultiTaskGP
    function: Function
    site: Site

    @property
    def points(self) -> Points:
        """The inducing points."""
        return self.function.points


class RowSites(NamedTuple):
    """What each row says of the function g there: exp(b·g − ½P·g²)."""

    linear: Float[np.ndarray, " N"]
    precision: Float[np.ndarray, " N"]


class StreamingSparse:
    """A streaming sparse GP.

    Args:
        likelihood: Of the only channel.
        kernel: Of its function.
        points: The number of inducing points at the t-th update, counted from one.
        rounds: The number of alternations between q and all other parameters per update. Gaussian
            noise needs only one.
        evaluations: The number of evaluations of the bound in each round.
        name: Of the channel.
        seed: Of the choice of inducing points.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        kernel: Kernel | None = None,
        *,
        points: Callable[[int], int],
        rounds: int = 5,
        evaluations: int = 60,
        name: str = "y",
        seed: int = 0,
    ):
        self._specification = Specification({name: likelihood}, [kernel or RBF()], seed=seed)
        self._points = points
        self._rounds = 1 if likelihood.conjugate else rounds
        self._evaluations = evaluations
        self._learn = True
        self._generator = np.random.default_rng(seed)
        self._kept: Kept | None = None
        self._updates = 0

    @property
    def inducing_points(self) -> tuple[np.ndarray, ...]:
        return () if self._kept is None else (self._kept.points,)

    def update(self, data: Data) -> None:
        """Learn a batch."""
        self._updates += 1
        new = rows(self._specification.names, data)
        kept = self._kept or self._nothing(data, new.x.shape[1])
        task = Task(kept, new)
        trial = task.trial(kept.model, self._placed(kept.points, new.x))
        held = trial.first_sites()
        for _ in range(self._rounds if self._learn else 0):
            held = trial.best_sites(held)
            trial = task.moved(trial, held, self._evaluations)
        site = trial.site(trial.best_sites(held))
        self._kept = Kept(trial.wrapped, trial.function, site)

    def update_many(self, x: np.ndarray, y: np.ndarray) -> SampleScores:
        """Learn samples one at a time in closed form; hyperparameters and points do not change."""
        learn, self._learn = self._learn, False
        try:
            return one_by_one(self, self._specification.names[0], x, y)
        finally:
            self._learn = learn

    def _nothing(self, data: Data, width: int) -> Kept:
        """A past without data and without inducing points."""
        model = literal_model(self._specification, data)
        function = _function(unwrap(model), np.zeros((0, width)))
        return Kept(model, function, Site(np.zeros(0), np.zeros((0, 0))))

    def _placed(self, old: Points, x: Float[np.ndarray, "N P"]) -> Points:
        """Initial inducing points: a random choice of old points and of inputs of the batch."""
        wanted = self._points(self._updates)
        kept = min(len(old), wanted - wanted // self._updates)
        stay = self._generator.choice(len(old), kept, replace=False)
        distinct = np.unique(x, axis=0)
        count = min(wanted - kept, len(distinct))
        fresh = self._generator.choice(len(distinct), count, replace=False)
        return np.concatenate([old[np.sort(stay)], distinct[np.sort(fresh)]])

    def predict(self, x: np.ndarray, channel: str | None = None) -> Prediction:
        """Predict the channel at `x`."""
        kept = learned(self._kept)
        index = position(self._specification, channel)

        function, posterior = kept.function, Posterior.of(kept.site)
        own = unwrap(kept.model).channels[index]

        def marginal(at: Float[np.ndarray, "N P"]) -> tuple[np.ndarray, np.ndarray]:
            mean, variance = posterior.at(function.seen(at))
            return mixed(own, mean[None], variance[None])

        return prediction(kept.model, marginal, x, index)


class Posterior(NamedTuple):
    """N(mean, covariance) of whitened values, and log ∫ p(v) t(v) dv."""

    mean: Float[np.ndarray, " M"]
    covariance: Float[np.ndarray, "M M"]
    log_evidence: float

    @classmethod
    def of(cls, site: Site) -> "Posterior":
        chol = cholesky_of_identity_plus(site.precision)
        covariance = inverse_of(chol)
        mean = covariance @ site.linear
        evidence = 0.5 * site.linear @ mean - np.sum(np.log(np.diag(chol)))
        return cls(mean, covariance, float(evidence))

    def at(self, seen: Seen) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Mean and variance of the function."""
        explained = np.sum(seen.values * (self.covariance @ seen.values), axis=0)
        return seen.values.T @ self.mean, explained + seen.left


class Fit(NamedTuple):
    """q given the past and some row sites, and its bound without what the past loses."""

    sites: RowSites
    posterior: Posterior
    mean: Float[np.ndarray, " N"]
    variance: Float[np.ndarray, " N"]
    expected: Expected
    bound: float


class Trial(NamedTuple):
    """What a choice of hyperparameters and inducing points means for the batch and the past."""

    wrapped: MultiTaskGP
    model: MultiTaskGP  # plain
    batch: Rows
    function: Function
    seen: Seen
    half: Float[np.ndarray, "M A"]  # L_b⁻¹K_ba
    transfer: Float[np.ndarray, "A M"]  # C: a, whitened like its site, is C·v_b on average
    carried: Site  # of a, seen through C
    lost: float  # the part of E_q[log t(a)] that the variance of a given b takes away

    def site(self, sites: RowSites) -> Site:
        """What the past and the rows say together."""
        values = self.seen.values
        return Site(
            self.carried.linear + values @ sites.linear,
            self.carried.precision + (values * sites.precision) @ values.T,
        )

    def fit(self, sites: RowSites, *, parameters: bool = False) -> Fit:
        """q with these row sites."""
        posterior = Posterior.of(self.site(sites))
        mean, variance = posterior.at(self.seen)
        said = expected(self.model, self.batch, mean[None], variance[None], parameters=parameters)
        b, p = sites
        squares = mean**2 + variance - self.seen.left
        bound = said.value + posterior.log_evidence - b @ mean + 0.5 * p @ squares
        return Fit(sites, posterior, mean, variance, said, float(bound))

    def first_sites(self) -> RowSites:
        """Where rounds begin."""
        nothing = RowSites(*np.zeros((2, self.batch.size)))
        if self._likelihood.conjugate:
            return self.exact_or(nothing)
        before = self.fit(nothing)
        return self._sites(self._likelihood.first_site, before.mean, before.variance)

    def exact_or(self, held: RowSites) -> RowSites:
        """The exact sites of a conjugate family; of others, those that are held."""
        if not self._likelihood.conjugate:
            return held
        return self._sites(self._likelihood.curvature, *np.zeros((2, self.batch.size)))

    def best_sites(self, held: RowSites) -> RowSites:
        """Rounds of natural gradients, damped so that the bound never falls."""
        fit, step = self.fit(self.exact_or(held)), 1.0
        for _ in range(_E_ROUNDS):
            wanted = self._sites(self._likelihood.curvature, fit.mean, fit.variance)
            moved = [old + step * (new - old) for old, new in zip(fit.sites, wanted, strict=True)]
            new = self.fit(RowSites(*moved))
            better = new.bound >= fit.bound - _ROUNDING * (1 + abs(new.bound))  # false for NaN
            done = better and step == 1.0 and abs(new.bound - fit.bound) < _E_TOLERANCE
            fit, step = (new, min(4 * step, 1.0)) if better else (fit, step / 8)
            if done or step < _SMALLEST_STEP:
                break
        return fit.sites

    @property
    def _likelihood(self) -> Likelihood:
        return self.model.channels[0].likelihood

    def _sites(self, curvature: Any, mean: np.ndarray, variance: np.ndarray) -> RowSites:
        """Sites of g from gradients and precisions of f = offset + w·g."""
        [channel] = self.model.channels
        y = self.batch.of(0, channel.likelihood.observation_dim)
        slope, bend = curvature(y, *mixed(channel, mean[None], variance[None]))
        weights = channel.loadings[:, 0]
        precision = bend @ weights @ weights
        return RowSites(slope @ weights + precision * mean, precision)


class Task(NamedTuple):
    """The past, and the batch that comes after it."""

    kept: Kept
    batch: Rows

    def trial(self, wrapped: MultiTaskGP, points: Points) -> Trial:
        model, old, site = unwrap(wrapped), self.kept.points, self.kept.site
        function = _function(model, points)
        half = solve_lower(function.chol, function.to(old))
        transfer = self._whitened(half.T)
        centred = old - model.origin
        total = with_nugget(function.kernel.matrix(centred, centred))
        # K_aa − Q_aa, whitened.
        left = self._whitened(self._whitened(total).T) - transfer @ transfer.T
        lost = -0.5 * float(np.vdot(site.precision, left))
        carried = Site(transfer.T @ site.linear, transfer.T @ site.precision @ transfer)
        seen = function.seen(self.batch.x)
        return Trial(wrapped, model, self.batch, function, seen, half, transfer, carried, lost)

    def _whitened(self, matrix: Float[np.ndarray, "A _"]) -> Float[np.ndarray, "A _"]:
        """L_a⁻¹ times a matrix, by the prior that the site is whitened by."""
        return solve_lower(self.kept.function.chol, matrix)

    def _unwhitened(self, matrix: Float[np.ndarray, "A _"]) -> Float[np.ndarray, "A _"]:
        """L_a⁻ᵀ times a matrix."""
        return solve_lower(self.kept.function.chol, matrix, transpose=True)

    def moved(self, trial: Trial, held: RowSites, evaluations: int) -> Trial:
        """Better hyperparameters and inducing points for these row sites."""
        points, theta = trial.function.points, free_vector(trial.wrapped)
        # Points move in units of the standard deviation of the inputs.
        spread = np.std(self.batch.x, axis=0) + 1e-12

        def at(vector: np.ndarray) -> Trial:
            free, shift = np.split(vector, [len(theta)])
            there = points + spread * shift.reshape(points.shape)
            return self.trial(with_free(trial.wrapped, free), there)

        def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, by_theta, by_points = self.bound(at(vector), held)
            gradient = np.concatenate([by_theta, np.ravel(spread * by_points)])
            return value / self.batch.size, gradient / self.batch.size

        return at(climbed(objective, np.concatenate([theta, np.zeros(points.size)]), evaluations))

    def bound(self, trial: Trial, held: RowSites) -> tuple[float, Float[np.ndarray, " T"], Points]:
        """The bound with the priors of hyperparameters, and its gradient by them and by points.

        Exact sites follow the hyperparameters. The bound is at its top in them, so they add nothing
        to its gradient.
        """
        fit = trial.fit(trial.exact_or(held), parameters=True)
        (b, p), posterior, said, values = fit.sites, fit.posterior, fit.expected, trial.seen.values
        [by_mean], [by_variance] = said.by_mean, said.by_variance
        by_mean = by_mean - b + p * fit.mean
        by_explained = by_variance + 0.5 * p
        spread = posterior.covariance @ values
        pulled = spread @ by_mean
        crossed = np.outer(pulled, posterior.mean)
        by_linear = posterior.mean + pulled
        by_precision = -0.5 * (np.outer(posterior.mean, posterior.mean) + posterior.covariance)
        by_precision -= 0.5 * (crossed + crossed.T) + (spread * by_explained) @ spread.T
        by_values = 2 * (by_precision @ values * p + spread * by_explained)
        by_values += np.outer(by_linear, b) + np.outer(posterior.mean, by_mean)
        by_kernel, by_points = self._by_kernel(
            trial, by_values, by_variance, Site(by_linear, by_precision)
        )
        gradients = {"kernels": (by_kernel,), "channels": said.channels}
        prior, by_prior = log_prior(trial.wrapped)
        by_theta = free_gradient(trial.wrapped, gradients) + by_prior
        return fit.bound + trial.lost + prior, by_theta, by_points

    def _by_kernel(
        self,
        trial: Trial,
        by_values: Float[np.ndarray, "M N"],
        by_left: Float[np.ndarray, " N"],
        by_site: Site,
    ) -> tuple[dict[str, Any], Points]:
        """Derivatives by the kernel's parameters and by the inducing points b.

        K(b, x) enters through the batch, K(b, a) and K(a, a) through the past, K(b, b) through
        both.
        """
        function, old = trial.function, self.kept.points - trial.function.origin
        kernel, z = function.kernel, function.points - function.origin
        by_past, by_old = self._by_past(trial, by_site)
        found, by_points = function.gradient(
            trial.seen, by_values, by_left, -by_past @ trial.half.T
        )
        found = summed(found, kernel.pullback(z, old, by_past))
        found = summed(found, kernel.pullback(old, old, by_old))
        return found, by_points + kernel.input_gradient(z, old, by_past)

    def _by_past(
        self, trial: Trial, by_site: Site
    ) -> tuple[Float[np.ndarray, "M A"], Float[np.ndarray, "A A"]]:
        """Derivatives by K(b, a) and K(a, a)."""
        site = self.kept.site
        seen = site.precision @ trial.transfer
        by_transfer = 2 * seen @ by_site.precision + np.outer(site.linear, by_site.linear)
        by_transfer += seen  # through what is lost
        pulled = self._unwhitened(by_transfer).T
        by_past = solve_lower(trial.function.chol, pulled, transpose=True)
        by_old = -0.5 * self._unwhitened(self._unwhitened(site.precision).T)
        by_old.flat[:: len(by_old) + 1] *= 1 + NUGGET
        return by_past, by_old


def _function(model: MultiTaskGP, points: Points) -> Function:
    """The only latent function of a plain model."""
    [kernel] = model.latent_kernels
    return Function.of(kernel, model.origin, points)
