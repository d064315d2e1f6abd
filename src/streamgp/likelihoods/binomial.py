"""Successes among a number of trials."""

import dataclasses

import numpy as np
from jaxtyping import Bool
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods.algebra import column, square
from streamgp.likelihoods.arrays import Latent, Observed, Slopes, Values
from streamgp.likelihoods.base import Likelihood
from streamgp.likelihoods.support import IntegerInterval, NonNegativeInteger, Support
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Binomial(Likelihood):
    """The number of successes in a number of trials.

    y is a whole number from 0 to `trials`. Each trial succeeds with probability sigmoid(f), where f
    is the latent parameter.

    Args:
        trials: The number of trials of each observation; at least 1. None if every observation
            brings its own number of trials, as a second number; predictions are then of one trial.

    Raises:
        ConfigurationError: If `trials` is neither None nor a whole number of at least 1.

    Examples:
        >>> import streamgp as sgp
        >>> sgp.ContinualGP({"passed": sgp.Binomial(20)}).channels
        ('passed',)
    """

    trials: int | None

    log_concave = True

    def __post_init__(self) -> None:
        if not (self.trials is None or (isinstance(self.trials, int) and self.trials >= 1)):
            raise ConfigurationError(
                problem(
                    "at least 1 trial",
                    repr(self.trials),
                    "Give how many there are per row, or None where a column has them.",
                )
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return ("successes", "trials") if self.trials is None else ("successes",)

    @property
    def support(self) -> Support:
        return NonNegativeInteger() if self.trials is None else IntegerInterval(0, self.trials)

    @property
    def bare(self) -> "Binomial":
        return Binomial(1) if self.trials is None else self

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        successes, trials = self._tried(y)
        total = np.sum(np.broadcast_to(trials, successes.shape))
        rate = (np.sum(successes) + 1) / (total + 2)  # Laplace's rule: never zero or one
        return special.logit(np.array([rate])), np.ones(1)

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        possible = super().valid(y)
        if self.trials is not None:
            return possible
        successes, trials = self.split(y)
        return possible & (trials >= np.maximum(successes, 1)) & (np.floor(trials) == trials)

    def log_density(self, y: Observed, f: Latent) -> Values:
        successes, trials = self._tried(y)
        failures, logit = trials - successes, f[..., 0]
        ways = special.gammaln(trials + 1.0)
        ways = ways - special.gammaln(successes + 1) - special.gammaln(failures + 1)
        return successes * logit + trials * special.log_expit(-logit) + ways

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        successes, trials = self._tried(y)
        yes, no = special.expit(f[..., 0]), special.expit(-f[..., 0])
        slope = successes * no - (trials - successes) * yes
        return column(slope), square(np.zeros(slope.shape) - trials * yes * no)

    def cdf(self, y: Observed, f: Latent) -> Values:
        successes, trials = self._tried(y)
        inside = _below(np.clip(np.floor(successes), 0, trials - 1), trials, f[..., 0])
        return np.where(successes < 0, 0.0, np.where(successes < trials, inside, 1.0))

    def smooth_cdf(self, y: Observed, f: Latent) -> Values:
        assert self.trials is not None
        inside = _below(np.clip(y, -1 + 1e-9, self.trials - 1e-9), self.trials, f[..., 0])
        return np.where(y <= -1, 0.0, np.where(y < self.trials, inside, 1.0))

    def waiting(self, y: Observed) -> tuple[Values, Values, Values]:
        """The log odds of the chance below which y + 1 of the trials' uniform numbers lie."""
        assert self.trials is not None
        a, b = y + 1, self.trials - y
        return a, b, np.log(np.maximum(a, 1e-300)) - np.log(np.maximum(b, 1e-300))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        trials = self.trials or 1
        mean = trials * special.expit(f[..., 0])
        return mean, mean * special.expit(-f[..., 0])

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        return rng.binomial(self.trials or 1, special.expit(f[..., 0])).astype(float)

    def _tried(self, y: Observed) -> tuple[Values, Values | int]:
        """Successes and trials."""
        if self.trials is not None:
            return y, self.trials
        successes, trials = self.split(y)
        return successes, trials


def _below(successes: Values, trials: Values | int, logit: Values) -> Values:
    """The probability of no more successes than that, fewer than there are trials."""
    return special.betainc(trials - successes, successes + 1, special.expit(-logit))
