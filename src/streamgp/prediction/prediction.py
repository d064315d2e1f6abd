"""Prediction: what the model says of one channel at some inputs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from streamgp.data.columns import Column, Label
from streamgp.data.frames import make_frame
from streamgp.data.labels import all_classes
from streamgp.data.schema import Inputs
from streamgp.errors import DataError, problem
from streamgp.inference.scoring import transform
from streamgp.likelihoods import Likelihood, class_count
from streamgp.likelihoods.quadrature import root
from streamgp.prediction.checks import check_count, check_ordered, check_probability
from streamgp.prediction.components import Components
from streamgp.prediction.crps import crps
from streamgp.prediction.moments import moments
from streamgp.prediction.quantiles import quantiles
from streamgp.prediction.values import read_values

_ROUNDING = 1e-15  # of a probability near 1
_ROWS = 1024  # that are computed together: bounds the memory of quadrature

# From a generator of random numbers and a count to draws of the latent parameters of all rows.
Draw = Callable[[np.random.Generator, int], Float[np.ndarray, "S R"]]

# From levels to the normal scores below which such shares of past rows fell, for each input.
Scores = Float[np.ndarray, "L N"]
Tracked = Callable[[Sequence[float]], Scores]

# The components of the latent parameters, once they are asked for.
Decompose = Callable[[], Components]


class Prediction:
    """The predictive distribution of y at N inputs, with the latent parameters behind it.

    Everything is in the units of the data. `mean` and `variance` are those of a new observation,
    noise included; `latent_mean` and `latent_variance` those of the function f alone. For a
    channel with classes, `mean` and `variance` have a column per class (those of its indicator).

    Attributes:
        likelihood: The family of the channel, with its parameters as plain numbers.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        mean: Float[np.ndarray, "N J"],
        covariance: Float[np.ndarray, "N J J"],
        *,
        inputs: Inputs | None = None,
        labels: tuple[Label, ...] = (),
        draw: Draw | None = None,
        tracked: Tracked | None = None,
        decompose: Decompose | None = None,
    ):
        self.likelihood = likelihood
        self._mean = mean
        self._covariance = covariance
        self._inputs = inputs
        self._labels = labels
        self._draw = draw
        self._tracked = tracked
        self._decompose = decompose

    def __len__(self) -> int:
        return len(self._mean)

    def __repr__(self) -> str:
        return f"Prediction({type(self.likelihood).__name__}, {len(self)} inputs)"

    @property
    def x(self) -> np.ndarray | None:
        """The inputs as they were given, times as times: (N,), or (N, P)."""
        return None if self._inputs is None else self._inputs.values

    # -- moments -------------------------------------------------------------------------------

    @property
    def latent_mean(self) -> np.ndarray:
        """E[f]: (N,), or (N, J) where the channel has several latent parameters."""
        return self._mean[:, 0] if self.likelihood.latents == 1 else self._mean

    @property
    def latent_variance(self) -> np.ndarray:
        """Var[f]: (N,), or (N, J)."""
        variances = np.diagonal(self._covariance, axis1=-2, axis2=-1)
        return variances[:, 0] if self.likelihood.latents == 1 else variances

    @property
    def mean(self) -> np.ndarray:
        """E[y] of a new observation: (N,); (N, K) of K classes, counts or shares."""
        return self._moments()[0]

    @property
    def variance(self) -> np.ndarray:
        """Var[y] of a new observation, noise included, in the shape of `mean`."""
        return self._moments()[1]

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of a new observation, noise included."""
        return np.sqrt(self.variance)

    @property
    def aleatoric(self) -> np.ndarray:
        """E[Var[y | f]]: the part of `variance` that remains even if f is known exactly."""
        return self._by_row(self.likelihood.bare.predictive_parts)[1]

    @property
    def epistemic(self) -> np.ndarray:
        """Var[E[y | f]]: the part of `variance` that comes from not knowing f."""
        return self._by_row(self.likelihood.bare.predictive_parts)[2]

    def _moments(self) -> list[np.ndarray]:
        return self._by_row(functools.partial(moments, self.likelihood))

    def _by_row(self, method: Callable[..., tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        """Numbers of each row that follow from q(f), a bounded number of rows at a time."""
        parts = [method(self._mean[rows], self._covariance[rows]) for rows in self._chunks()]
        return [np.concatenate(own) for own in zip(*parts, strict=True)]

    def components(self) -> Components:
        """The components whose sum f is: level, trend, seasons, events, latent functions.

        Returns:
            Mean and variance of each component at each input, by name. They are about f, without
            noise: for counts, about the logarithm of the rate.

        Raises:
            DataError: If the prediction was not made by a model.
        """
        if self._decompose is None:
            raise DataError(
                problem("a prediction made by a model", "one without", "Use `model.predict`.")
            )
        return self._decompose()

    def _chunks(self) -> list[slice]:
        """All rows, a bounded number at a time."""
        return [slice(begin, begin + _ROWS) for begin in range(0, max(len(self), 1), _ROWS)]

    # -- classes -------------------------------------------------------------------------------

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, by label where the data had labels; in the order of their numbers."""
        count = self.likelihood.classes
        if not count:
            raise DataError(
                problem(
                    "a channel with classes (Bernoulli, Categorical, Ordinal)",
                    type(self.likelihood).__name__,
                    "Use `mean`, `interval` or `quantile` for this channel.",
                )
            )
        return all_classes(self._labels, count)

    @property
    def probabilities(self) -> Float[np.ndarray, "N K"]:
        """The probability of each of the `classes`, for channels that have them."""
        count, mean = len(self.classes), self.mean
        return mean if mean.shape[1:] == (count,) else np.stack([1 - mean, mean], axis=-1)

    @property
    def label(self) -> np.ndarray:
        """The most probable class at each input, by label."""
        return self._named(np.argmax(self.probabilities, axis=-1))

    def _named(self, numbers: np.ndarray) -> np.ndarray:
        """Class numbers as labels, of the type that the labels have together."""
        classes = self.classes
        kinds = {type(label) for label in classes}
        return np.asarray(classes, None if len(kinds) == 1 else object)[numbers.astype(int)]

    # -- the whole distribution ----------------------------------------------------------------

    def interval(
        self, level: float = 0.95, *, calibrated: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that contains a new observation with that probability.

        Args:
            level: The probability.
            calibrated: Whether to correct the ends of the interval by how past observations fell
                in what was predicted for them before they were learned. Until a channel has been
                scored, nothing changes.

        Returns:
            The lower and the upper ends.

        Raises:
            DataError: If the level is not between 0 and 1, or the values have no order.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian(noise=sgp.fixed(0.5)))  # the noise is 0.1
            >>> x, rng = np.linspace(0, 40, 800), np.random.default_rng(0)
            >>> report = model.update_many(x, np.sin(x) + 0.1 * rng.normal(size=800))
            >>> ends = model.predict([40.0]).interval(0.95, calibrated=True)
            >>> bool(ends[1] - ends[0] < 1.0)  # 2.0 if not calibrated
            True
        """
        check_probability(level)
        levels = (1 - level) / 2, (1 + level) / 2
        lower, upper = self._calibrated(*levels) if calibrated else self._quantiles(*levels)
        return lower, upper

    def _calibrated(self, *levels: float) -> list[Float[np.ndarray, " N"]]:
        """The values below which these shares of past observations would have fallen."""
        check_ordered(self.likelihood)
        if self._tracked is None:
            return self._quantiles(*levels)
        scores = self._tracked(levels)
        closed = self.likelihood.predictive_value(scores, self._mean, self._covariance)
        if closed is not None:
            return list(closed)
        shares = np.clip(special.ndtr(scores), _ROUNDING, 1 - _ROUNDING)
        return list(quantiles(self.likelihood, self._mean, self._covariance, shares))

    def quantile(self, level: float) -> Float[np.ndarray, " N"]:
        """The value below which a new observation falls with that probability.

        Args:
            level: The probability.

        Returns:
            One value for each input; of a channel with ordered classes, the number of a class.

        Raises:
            DataError: If the level is not between 0 and 1, or the values have no order.
        """
        check_probability(level)
        return self._quantiles(level)[0]

    def _quantiles(self, *levels: float) -> list[Float[np.ndarray, " N"]]:
        check_ordered(self.likelihood)
        wanted = np.asarray(levels, float)[:, None]
        return list(quantiles(self.likelihood, self._mean, self._covariance, wanted))

    def log_density(self, y: Any) -> Float[np.ndarray, " N"]:
        """The log density of observations, log p(y).

        Args:
            y: One observation for each input, or one for all; labels where the channel has them.

        Returns:
            One number for each input.

        Raises:
            DataError: If observations cannot be used.
        """
        return self._by_value(self.likelihood.log_predictive, y)

    def cdf(self, y: Any) -> Float[np.ndarray, " N"]:
        """The distribution function of a new observation, P(Y ≤ y).

        Args:
            y: One value for each input, or one for all.

        Returns:
            One probability for each input.

        Raises:
            DataError: If values cannot be used, or have no order.
        """
        check_ordered(self.likelihood)
        return self._by_value(self.likelihood.predictive_cdf, y)

    def crps(self, y: Any) -> Float[np.ndarray, " N"]:
        """The continuous ranked probability score of observations; lower is better.

        It is ∫ (P(Y ≤ z) − 1{y ≤ z})² dz, in the units of y: the absolute error, if a prediction is
        certain. For yes or no it is the Brier score. Gaussian, log-normal and binary channels have
        a formula. Counts and grades are added up, other families integrated over quantiles, right
        to about one part in a thousand.

        Args:
            y: One observation for each input, or one for all; labels where the channel has them.

        Returns:
            One score for each input.

        Raises:
            DataError: If observations cannot be used, or the values have no order.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian())
            >>> x = np.linspace(0, 6, 60)
            >>> report = model.update(x, np.sin(x))
            >>> bool(model.predict(x).crps(np.sin(x)).max() < 0.01)
            True
        """
        check_ordered(self.likelihood)

        def method(y: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
            return crps(self.likelihood, y, mean, covariance)

        return self._by_value(method, y)

    def pit(self, y: Any, *, seed: int = 0) -> Float[np.ndarray, " N"]:
        """The probability integral transform of observations: P(Y ≤ y), uniform if all is right.

        Discrete values have a jump at y. There the transform is drawn from the jump at random.

        Args:
            y: One observation for each input, or one for all; labels where the channel has them.
            seed: Of the random numbers, for discrete values.

        Returns:
            One number between 0 and 1 for each input.

        Raises:
            DataError: If observations cannot be used, or the values have no order.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Poisson())
            >>> x = np.linspace(0, 6, 300)
            >>> y = np.random.default_rng(0).poisson(5, 300)
            >>> report = model.update(x[::2], y[::2])
            >>> transformed = model.predict(x[1::2]).pit(y[1::2])
            >>> bool(abs(np.mean(transformed) - 0.5) < 0.1)
            True
        """
        check_ordered(self.likelihood)
        place = np.random.default_rng(seed).random(len(self))

        def method(y: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
            return np.stack(transform(self.likelihood, y, mean, covariance), axis=-1)

        low, high = self._by_value(method, y).T
        return low + place * (high - low)

    def _by_value(self, method: Callable[..., np.ndarray], y: Any) -> Float[np.ndarray, "N ..."]:
        values = self.values(y)
        parts = [
            method(values[rows], self._mean[rows], self._covariance[rows])
            for rows in self._chunks()
        ]
        return np.concatenate(parts)

    def values(self, y: Any, *, rows: int | None = None) -> Float[np.ndarray, "N ..."]:
        """One observation for each input, checked, as a number; as several where it is several.

        Args:
            y: The observations of the channel.
            rows: How many there are, if they belong to other inputs than those of the prediction.

        Raises:
            DataError: If there are more or fewer, or the channel cannot have produced them.
        """
        return read_values(y, len(self) if rows is None else rows, self.likelihood, self._labels)

    def sample(self, count: int = 1, *, seed: int = 0, joint: bool = False) -> np.ndarray:
        """Draws of a new observation at each input.

        Args:
            count: How many draws.
            seed: Of the random numbers.
            joint: Whether each draw is of one function over all inputs, with noise of its own at
                each, instead of independent between inputs.

        Returns:
            An array (count, N); of labels where the channel has them. It is (count, N, C) where an
            observation is several numbers.

        Raises:
            DataError: If `joint` and there are too many inputs.
        """
        check_count(count)
        rng = np.random.default_rng(seed)
        if not joint:
            return self.observed(self._f(rng, count), rng)
        if self._draw is None:
            raise DataError(
                problem("a prediction made by a model", "one without", "Use `joint=False`.")
            )
        return self.observed(self._draw(rng, count).reshape(count, *self._mean.shape), rng)

    def _f(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "S N J"]:
        noise = rng.normal(size=(count, *self._mean.shape))
        return self._mean + np.einsum("njk,snk->snj", root(self._covariance), noise)

    def observed(self, f: Float[np.ndarray, "S N J"], rng: np.random.Generator) -> np.ndarray:
        """A draw of an observation for each draw of the latent parameters."""
        values = self.likelihood.sample(f, rng)
        return self._named(values) if self._labels else values

    # -- frames --------------------------------------------------------------------------------

    def to_frame(
        self, level: float = 0.95, *, calibrated: bool = False, backend: str = "pandas"
    ) -> Any:
        """A frame with a row for each input: the inputs, and mean, std, lower and upper.

        For a channel with classes, the probability of each and the most probable label. Where an
        observation is several numbers, mean and std of each.

        Args:
            level: The probability of the intervals.
            calibrated: Whether intervals are calibrated, as in `interval`.
            backend: "pandas" or "polars".
        """
        inputs = self.input_columns()
        found = self.columns(level, tuple(inputs), calibrated=calibrated)
        return make_frame({**inputs, **found}, backend)

    def input_columns(self) -> dict[str, Column]:
        """The inputs by name."""
        if self._inputs is None:
            return {}
        return dict(zip(self._inputs.names, self._inputs.columns, strict=True))

    def columns(
        self, level: float, taken: tuple[str, ...] = (), *, calibrated: bool = False
    ) -> dict[str, np.ndarray]:
        """What is predicted, by name."""
        if self.likelihood.observation_dim > 1:
            pairs = zip(self.likelihood.columns, self.mean.T, self.std.T, strict=True)
            return {
                f"{name}_{what}": values
                for name, mean, std in pairs
                for what, values in (("mean", mean), ("std", std))
            }
        if class_count(self.likelihood):
            names = [str(label) for label in self.classes]
            if {*names} & {*taken, "label"}:
                names = [f"P({name})" for name in names]
            return {**dict(zip(names, self.probabilities.T, strict=True)), "label": self.label}
        lower, upper = self.interval(level, calibrated=calibrated)
        return {"mean": self.mean, "std": self.std, "lower": lower, "upper": upper}
