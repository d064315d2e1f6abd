"""What a likelihood is: a log density given latent parameters, and what follows from that.

A family of your own is a subclass with `log_density`; whatever inference needs has a default by
quadrature and differences. `moments`, `cdf` and `sample` are for predictions.

Functions within methods have no shapes in their annotations: making these takes longer than most
of what is computed.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods import quadrature
from streamgp.likelihoods.algebra import each, positive_part
from streamgp.likelihoods.arrays import ByName, Covariances, Latent, Means, Observed, Slopes, Values
from streamgp.likelihoods.support import Real, Support
from streamgp.numerics import differences
from streamgp.parameters import Module, fields_of, replaced

LEVELS = 100.0  # how far the level of real values may move, in units of the first data's spread


class Expected(NamedTuple):
    """E_q[log p(y | f)] of each row, and the derivatives of that number.

    `by_covariance` is symmetric: a small symmetric change dS changes the value by Σ_jk G_jk·dS_jk.
    """

    value: Values
    by_mean: Means
    by_covariance: Covariances


@dataclasses.dataclass(frozen=True, eq=False)
class Likelihood(Module, ABC):
    """The distribution p(y | f) of the observations of a channel.

    f are the J latent parameters of the channel. Methods that take `y`, `mean` and `covariance` are
    about N observations and the marginals q(f) = N(mean, covariance) at their inputs. `y` has the
    shape (N,), or (N, C) where an observation is several numbers.

    Derive a frozen dataclass from this class and define `log_density` for a family of your own.
    What inference needs has a default by quadrature and differences. `moments`, `cdf` and `sample`
    are for predictions. Fields that hold floating-point numbers are parameters; see
    `streamgp.parameters.positive`.

    Attributes:
        conjugate: Whether the site of a row does not depend on q(f), so that one round is exact.
        log_concave: Whether log p(y | f) is concave in f. If not, precisions are made positive.
        ordered: Whether one observation can be larger than another.
        classes: How many classes or parts have a probability or a share; 0 if there are none. An
            observation is one class only if it is also one number: see `class_count`.
        difference_step: The step in f for derivatives that are not written out.

    Examples:
        >>> import dataclasses, numpy as np, streamgp as sgp
        >>> @dataclasses.dataclass(frozen=True, eq=False)
        ... class Laplace(sgp.Likelihood):
        ...     def log_density(self, y, f):
        ...         return -np.abs(y - f[..., 0]) / 0.1 - np.log(0.2)
        >>> sgp.ContinualGP(Laplace()).channels
        ('y',)
    """

    conjugate: ClassVar[bool] = False  # the site does not depend on q(f): one round is exact
    log_concave: ClassVar[bool] = False  # in f: sites are then positive without clipping
    ordered: ClassVar[bool] = True  # whether quantiles make sense
    classes: ClassVar[int] = 0  # how many classes or parts there are
    difference_step: ClassVar[float] = 2e-3  # in f, where derivatives are not written out

    @property
    def latents(self) -> int:
        """J, the number of latent parameters."""
        return 1

    @property
    def columns(self) -> tuple[str, ...]:
        """What the numbers of one observation are; the first is the value that is predicted."""
        return ("value",)

    @property
    def observation_dim(self) -> int:
        """C, how many numbers an observation is."""
        return len(self.columns)

    @property
    def support(self) -> Support:
        """Where the value of an observation can lie."""
        return Real()

    @property
    def bare(self) -> "Likelihood":
        """The family of a value alone, which predictions speak of.

        What else an observation says of itself (an exposure, a weight) is not known of a new one.
        """
        return self

    # -- starting from data ------------------------------------------------------------------

    def start(self, y: Observed) -> "Likelihood":
        """With every parameter that was left out filled in; `y` may be empty."""
        return self

    def location(self, y: Observed) -> tuple[np.ndarray, np.ndarray]:
        """Offset and scale of each latent parameter, from the channel's first data.

        f = offset + scale · (mixed latent functions), so that those stay of order one whatever
        the units of y. `y` may be empty.
        """
        return np.zeros(self.latents), np.ones(self.latents)

    def with_least_noise(self, part: float, y: Observed) -> "Likelihood":
        """With noise of at least that part of the spread of some data, once started.

        It concerns families whose noise is a common factor of all sites; others stay as they are.
        """
        return self

    def above_rounding(self, y: Observed, *, first: bool) -> "Likelihood":
        """With noise that is no less than the rounding of observations, once started.

        The `first` ones show whether values are rounded at all. Later ones may show that they are
        less so than it seemed.
        """
        return self

    def with_rounding_of(self, other: Any) -> "Likelihood":
        """With what another of the family knows of the rounding of observations."""
        return self

    @property
    def offset_spread(self) -> Float[np.ndarray, " J"]:
        """How far offsets may come to lie from where they start, in units of `location`'s scale.

        It is the standard deviation of a prior on each latent parameter's level. The default, 3,
        suits a parameter behind a logarithm or a logit.
        """
        return np.full(self.latents, 3.0)

    def valid(self, y: Observed) -> Bool[np.ndarray, " N"]:
        """Which observations this family can have produced."""
        value, *others = self.split(y)
        finite = np.isfinite(value)
        for part in others:
            finite &= np.isfinite(part)
        return finite & self.support.contains(value)

    def split(self, y: Observed) -> tuple[Values, ...]:
        """The numbers of every observation, column by column."""
        if self.observation_dim == 1:
            return (y,)
        if not y.size:
            y = y.reshape(0, self.observation_dim)
        return tuple(np.moveaxis(y, -1, 0))

    # -- the density -------------------------------------------------------------------------

    @abstractmethod
    def log_density(self, y: Observed, f: Latent) -> Values:
        """log p(y | f); the leading axes of y and f are broadcast against each other."""

    def derivatives(self, y: Observed, f: Latent) -> Slopes:
        """Gradient and Hessian of the log density by f; by differences unless written out."""

        def along(f: np.ndarray) -> np.ndarray:
            return self.log_density(y, f)

        return self.gradient(y, f), differences.hessian(along, f, self.difference_step)

    def gradient(self, y: Observed, f: Latent) -> Latent:
        """The first part of `derivatives`, where that is cheaper to have alone."""
        if type(self).derivatives is not Likelihood.derivatives:
            return self.derivatives(y, f)[0]
        return differences.gradient(lambda f: self.log_density(y, f), f, self.difference_step)

    def parameter_gradient(self, y: Observed, f: Latent) -> ByName:
        """The derivative of the log density by each parameter: (*b, and the parameter's shape)."""
        return self._by_differences(lambda family: family.log_density(y, f))

    def plain_parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        """The parameters of this family by field, once they are plain numbers."""
        for name, value in fields_of(self):
            if isinstance(value, np.ndarray | np.floating):
                yield name, np.asarray(value)

    def _by_differences(self, function: Callable[["Likelihood"], np.ndarray]) -> ByName:
        """The derivative of something about this family by each parameter, by differences."""

        def along(name: str) -> Callable[[np.ndarray], np.ndarray]:
            return lambda number: function(replaced(self, **{name: number}))

        parameters = self.plain_parameters()
        return {name: differences.by_number(along(name), value) for name, value in parameters}

    # -- inference ---------------------------------------------------------------------------

    def expected(self, y: Observed, mean: Means, covariance: Covariances) -> Expected:
        """E_q[log p(y | f)], and the exact derivatives of that number."""
        f, weights = quadrature.spread(mean, covariance)
        value = quadrature.average(weights, self.log_density(y, f))

        def bend(rows: np.ndarray) -> np.ndarray:
            return quadrature.average(weights, self.derivatives(y[rows], f[:, rows])[1])

        slopes = quadrature.expectation_slopes(mean, covariance, self.gradient(y, f), bend)
        return Expected(value, *slopes)

    def expected_parameter_gradient(
        self, y: Observed, mean: Means, covariance: Covariances
    ) -> ByName:
        """The derivative of Σ_n E_q[log p(y_n | f)] by each parameter."""
        return each(
            lambda rows: np.sum(rows, axis=0), self.expected_parameter_rows(y, mean, covariance)
        )

    def expected_parameter_rows(self, y: Observed, mean: Means, covariance: Covariances) -> ByName:
        """The derivative of each row's E_q[log p(y | f)] by each parameter."""
        if not dict(self.plain_parameters()):
            return {}
        f, weights = quadrature.spread(mean, covariance)
        gradients = self.parameter_gradient(y, f)
        return each(lambda at_nodes: quadrature.average(weights, at_nodes), gradients)

    def curvature(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """E_q[∇ log p] and −E_q[∇∇ log p], made positive semi-definite.

        By Bonnet's and Price's theorems these are ∂E/∂m and −2·∂E/∂S, the natural gradient of
        the expectation. Averaging Hessians keeps a log-concave family's precision positive
        node by node, which differentiating through a Cholesky factor would not.
        """
        f, weights = quadrature.spread(mean, covariance)
        gradients, hessians = self.derivatives(y, f)
        precision = -quadrature.average(weights, hessians)
        if not self.log_concave:
            precision = positive_part(precision)
        return quadrature.average(weights, gradients), precision

    def site_gradient(
        self, y: Observed, offset: Means, by_linear: Means, by_precision: Covariances
    ) -> ByName:
        """For a conjugate family: how its exact sites depend on each parameter.

        Returns:
            The derivative of Σ by_linear·b + by_precision·P by each parameter, where b and P are
            the gradient and the precision that `curvature` gives at `offset`.
        """

        def weighted(likelihood: "Likelihood") -> np.ndarray:
            linear, precision = likelihood.curvature(y, offset, np.zeros(by_precision.shape))
            return np.asarray(np.vdot(by_linear, linear) + np.vdot(by_precision, precision))

        return self._by_differences(weighted)

    def first_site(self, y: Observed, mean: Means, covariance: Covariances) -> Slopes:
        """Where the E step's rounds begin: gradient at `mean`, and precision. None by default."""
        return np.zeros(mean.shape), np.zeros(covariance.shape)

    # -- noise that scales sites -----------------------------------------------------------------

    @property
    def scales_sites(self) -> bool:
        """Whether one parameter, the noise, is a common factor of the sites of all rows.

        If so, what past rows said can be kept at unit noise and read under any other noise.
        """
        return False

    @property
    def strength(self) -> float:
        """That factor: 1/noise² for normal noise. One for every other family."""
        return 1.0

    def strength_gradient(self, by_log_strength: float) -> ByName:
        """A derivative by the logarithm of `strength` as one by each parameter."""
        return {}

    @property
    def adds_up(self) -> bool:
        """Whether several values at one f are told by their number, their mean and their scatter.

        The mean and the sum of squares about it are those of `summable` values.
        """
        return False

    def summable(self, y: Observed) -> Values:
        """Values on the scale on which they add up."""
        return y

    def of_sums(self, mean: Values) -> Observed:
        """A value back from that scale."""
        return mean

    # -- prediction ----------------------------------------------------------------------------

    def log_predictive(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        """log E_q[p(y | f)]."""
        if self.latents > 1:
            f, weights = quadrature.spread(mean, covariance, fine=not self.log_concave)
            return quadrature.log_sum(self.log_density(y, f), weights)
        marginal = mean[:, 0], covariance[:, 0, 0]
        if not self.log_concave:
            return quadrature.refined_log_average(
                lambda rows, f: self.log_density(y[rows], f[..., None]), *marginal
            )

        def derivatives(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            slope, bend = self.derivatives(y, f[:, None])
            return slope[:, 0], bend[:, 0, 0]

        return quadrature.log_integral(
            lambda f: self.log_density(y, f[..., None]), derivatives, *marginal
        )

    def predictive_cdf(self, y: Observed, mean: Means, covariance: Covariances) -> Values:
        """E_q[P(Y ≤ y | f)]."""
        score = self.predictive_score(y, mean, covariance)
        if score is not None:
            return special.ndtr(score)
        if self.latents == 1:
            return quadrature.refined_average(
                lambda rows, f: self.cdf(y[rows], f[..., None]), mean[:, 0], covariance[:, 0, 0]
            )
        f, weights = quadrature.spread(mean, covariance, fine=True)
        return quadrature.average(weights, self.cdf(y, f))

    def predictive_score(self, y: Observed, mean: Means, covariance: Covariances) -> Values | None:
        """The normal score Φ⁻¹(P(Y ≤ y)), where a formula has it however far out y is."""
        return None

    def predictive_value(
        self, score: Float[np.ndarray, "*#b N"], mean: Means, covariance: Covariances
    ) -> Float[np.ndarray, "*#b N"] | None:
        """The y that has that normal score, where there is a formula for it."""
        return None

    def predictive_crps(self, y: Observed, mean: Means, covariance: Covariances) -> Values | None:
        """∫ (P(Y ≤ z) − 1{y ≤ z})² dz, where there is a formula for it."""
        return None

    def is_value(self, y: Observed) -> Bool[np.ndarray, " N"]:
        """Which observations are values that were seen, and not bounds of values."""
        return np.ones(len(y), bool)

    def predictive_moments(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of y."""
        total, within, between = self.predictive_parts(mean, covariance)
        return total, within + between

    def predictive_parts(
        self, mean: Means, covariance: Covariances
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean of y, and the two parts of its variance: E[E[y|f]], E[Var[y|f]], Var[E[y|f]].

        The first part is there however well f is known, the second comes from not knowing f.
        """
        f, weights = quadrature.spread(mean, covariance)
        means, variances = self.moments(f)
        total = quadrature.average(weights, means)
        between = quadrature.average(weights, (means - total) ** 2)
        return total, quadrature.average(weights, variances), between

    def cdf(self, y: Observed, f: Latent) -> Values:
        """P(Y ≤ y | f)."""
        self._is_missing("cdf(y, f)", "the probability of a value up to y")

    def smooth_cdf(self, y: Observed, f: Latent) -> Values | None:
        """For counts: P(Y ≤ y | f) continued smoothly between whole numbers, if there is such."""
        return None

    def waiting(self, y: Observed) -> tuple[Values, Any, Values] | None:
        """For counts: what P(Y ≤ y | f) is the probability of being above f, if there is such.

        It is the logarithm of a Gamma(a) variate over a Gamma(b) one, times a constant: of the
        waiting time for one event more than y. Large counts then need neither incomplete gamma
        functions nor many nodes. Returns a, b (infinite if there is only the first) and the mode.
        """
        return None

    def log_tail(self, y: Observed, f: Latent, upper: bool) -> Values:
        """log P(Y > y | f) if `upper`, else log P(Y ≤ y | f)."""
        below = self.cdf(y, f)
        with np.errstate(divide="ignore"):
            return np.log1p(-below) if upper else np.log(below)

    def tail_derivatives(self, y: Observed, f: Latent, upper: bool) -> Slopes:
        """Gradient and Hessian of `log_tail` by f; by differences unless written out."""

        def along(f: np.ndarray) -> np.ndarray:
            return self.log_tail(y, f, upper)

        step = self.difference_step
        return differences.gradient(along, f, step), differences.hessian(along, f, step)

    def tail_parameter_gradient(self, y: Observed, f: Latent, upper: bool) -> ByName:
        """The derivative of `log_tail` by each parameter; by differences unless written out."""
        return self._by_differences(lambda family: family.log_tail(y, f, upper))

    def moments(self, f: Latent) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of y given f."""
        self._is_missing("moments(f)", "mean and variance of y given f")

    def sample(self, f: Latent, rng: np.random.Generator) -> np.ndarray:
        """A draw of y for each f."""
        self._is_missing("sample(f, rng)", "a draw of y for each f")

    def _is_missing(self, method: str, what: str) -> NoReturn:
        name = type(self).__name__
        raise ConfigurationError(
            problem(f"a likelihood with `{method}`", name, f"Write {what} as a method of {name}.")
        )
