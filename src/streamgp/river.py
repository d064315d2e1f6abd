"""Estimators for river. Needs river (`pip install streamgp[river]`).

Features are numbers in a dictionary. Their names are those of the first sample learned: names
that appear later are ignored, and a feature that is absent (or None, or NaN) takes its mean so far.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from tinygp.kernels import Kernel

from streamgp.adapting import Learning, build
from streamgp.errors import DataError, problem
from streamgp.forgetting import Forgetting
from streamgp.likelihoods import Bernoulli, Gaussian, Likelihood
from streamgp.model import ContinualGP

try:
    from river import base, proba, stats
except ImportError as error:
    raise ImportError("streamgp.river needs river: pip install 'streamgp[river]'") from error

_ENOUGH = 32  # samples to start from

Sample = Mapping[Hashable, Any]


class _Estimator(base.Estimator):
    """The settings of both estimators, and their features."""

    def __init__(
        self,
        kernel: Kernel | None = None,
        tolerance: float = 1e-2,
        budget: int = 64,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.tolerance = tolerance
        self.budget = budget
        self.learning = learning
        self.forgetting = forgetting
        self.seed = seed
        self._means: dict[Hashable, stats.Mean] = {}  # of each feature, in the model's order

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"budget": 16, "learning": None}

    def _build(self, likelihood: Likelihood) -> ContinualGP:
        return build(
            {"y": likelihood},
            kernel=self.kernel,
            tolerance=self.tolerance,
            budget=self.budget,
            learning=self.learning,
            forgetting=self.forgetting,
            seed=self.seed,
        )

    def _inputs(self, samples: list[Sample], *, learn: bool) -> Float[np.ndarray, "N P"]:
        """One row a sample; `learn` lets each be counted before the next is looked at."""
        if learn and not self._means and samples:
            # Sorted, so that the order of a dictionary does not matter.
            self._means = {name: stats.Mean() for name in sorted(samples[0], key=repr)}
        rows = []
        for sample in samples:
            seen = {n: v for n in self._means if (v := _number(n, sample.get(n))) is not None}
            for name in seen if learn else ():
                self._means[name].update(seen[name])
            rows.append([seen.get(name, mean.get()) for name, mean in self._means.items()])
        return np.asarray(rows, float).reshape(len(rows), len(self._means))


class ContinualGPRegressor(_Estimator, base.MiniBatchRegressor):
    """Gaussian process regression, one sample at a time.

    Args:
        kernel: a kernel of streamgp or tinygp; by default an RBF with a lengthscale a feature.
        likelihood: of the target; by default `Gaussian`.
        tolerance: the share of prior variance that inducing points may leave open.
        budget: the most inducing points.
        learning: "vem", a `VEM`, or None to leave hyperparameters where they start.
        forgetting: below 1, what is left of the past after each sample.
        seed: of the random start, where the likelihood has several latent parameters.

    Example:
        >>> import math
        >>> from streamgp.river import ContinualGPRegressor
        >>> model = ContinualGPRegressor()
        >>> for i in range(60):
        ...     model.learn_one({"t": i / 10}, math.sin(i / 10))
        >>> abs(model.predict_one({"t": 1.0}) - math.sin(1.0)) < 1e-2
        True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        tolerance: float = 1e-2,
        budget: int = 64,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
    ):
        super().__init__(kernel, tolerance, budget, learning, forgetting, seed)
        self.likelihood = likelihood
        self._stream = _Stream()

    def learn_one(self, x: Sample, y: float) -> None:
        self._learn([x], [y])

    def learn_many(self, X: Any, y: Any) -> None:  # noqa: N803 (river's name)
        """The rows of a data frame, in order."""
        self._learn(X.to_dict(orient="records"), list(y))

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """The expected target, or with `with_dist` a normal of its mean and variance."""
        model = self._stream.model
        if model is None:
            return proba.Gaussian._from_state(n=1, m=0.0, var=1.0, ddof=0) if with_dist else 0.0
        prediction = model.predict(self._inputs([x], learn=False))
        mean = float(prediction.mean[0])
        if not with_dist:
            return mean
        return proba.Gaussian._from_state(n=1, m=mean, var=float(prediction.variance[0]), ddof=0)

    def predict_many(self, X: Any) -> Any:  # noqa: N803
        """A series of expected targets."""
        import pandas as pd

        means, model = np.zeros(len(X)), self._stream.model
        if model is not None and len(X):
            means = model.predict(self._inputs(X.to_dict(orient="records"), learn=False)).mean
        return pd.Series(means, index=X.index)

    def _learn(self, samples: list[Sample], y: list[float]) -> None:
        x = self._inputs(samples, learn=True)
        if not x.size:  # nothing to go by yet
            return
        likelihood = Gaussian() if self.likelihood is None else self.likelihood
        self._stream.learn(lambda: self._build(likelihood), x, np.asarray(y, float))


class ContinualGPClassifier(_Estimator, base.MiniBatchClassifier):
    """Gaussian process classification, one sample at a time, of classes that need not be known.

    Classes are kept in the order in which they appear, and each but the last asks one question,
    with a Bernoulli model of its own: is it this class, or one that appeared later? Two classes
    are so one model, a third adds one, and the probabilities sum to one as they are.

    Args:
        kernel: a kernel of streamgp or tinygp; by default an RBF with a lengthscale a feature.
        tolerance: the share of prior variance that inducing points may leave open.
        budget: the most inducing points of each question.
        learning: "vem", a `VEM`, or None to leave hyperparameters where they start.
        forgetting: below 1, what is left of the past after each sample.
        seed: of the order in which large batches are folded in.

    Example:
        >>> from streamgp.river import ContinualGPClassifier
        >>> model = ContinualGPClassifier()
        >>> for i in range(40):
        ...     model.learn_one({"t": i % 10}, "late" if i % 10 > 4 else "early")
        >>> model.predict_one({"t": 1}), model.predict_one({"t": 8})
        ('early', 'late')
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        tolerance: float = 1e-2,
        budget: int = 64,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
    ):
        super().__init__(kernel, tolerance, budget, learning, forgetting, seed)
        self._classes: dict[Hashable, int] = {}  # by order of appearance
        self._questions: list[_Stream] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Sample, y: Hashable) -> None:
        self._learn([x], [y])

    def learn_many(self, X: Any, y: Any) -> None:  # noqa: N803
        """The rows of a data frame, in order."""
        self._learn(X.to_dict(orient="records"), list(y))

    def predict_proba_one(self, x: Sample) -> dict[Hashable, float]:
        """The probability of every class seen so far; empty before the first."""
        if not self._classes:
            return {}
        (row,) = self._probabilities([x]).tolist()
        return dict(zip(self._classes, row, strict=True))

    def predict_proba_many(self, X: Any) -> Any:  # noqa: N803
        """A data frame of probabilities, a column a class."""
        import pandas as pd

        rows = self._probabilities(X.to_dict(orient="records"))
        return pd.DataFrame(rows, columns=list(self._classes), index=X.index)

    def _learn(self, samples: list[Sample], labels: list[Hashable]) -> None:
        x = self._inputs(samples, learn=True)
        if not x.size:  # nothing to go by yet
            return
        index = np.array([self._classes.setdefault(y, len(self._classes)) for y in labels])
        for q in range(max(len(self._classes) - 1, 1)):
            asked = index >= q
            if q == len(self._questions):  # first asked when a later class appears
                asked &= (np.arange(len(index)) >= np.argmax(index > q)) | (q == 0)
                self._questions.append(_Stream())
            answers = (index[asked] == q).astype(float)
            self._questions[q].learn(lambda: self._build(Bernoulli()), x[asked], answers)

    def _probabilities(self, samples: list[Sample]) -> Float[np.ndarray, "N K"]:
        """What the questions before leave over, times the answer to its own."""
        x, left, columns = self._inputs(samples, learn=False), np.ones(len(samples)), []
        for question in self._questions[: len(self._classes) - 1]:
            assert question.model is not None
            yes = np.clip(question.model.predict(x).mean, 0.0, 1.0)
            columns.append(left * yes)
            left = left * (1.0 - yes)
        return np.stack([*columns, left], axis=-1)[:, : len(self._classes)]


class _Stream:
    """A model of samples that come in order, from the first one on.

    Scales cannot be read off one sample, so the first few are kept, and the model is started
    again from all of them each time they have doubled.
    """

    def __init__(self) -> None:
        self.model: ContinualGP | None = None
        self._first: list[tuple[np.ndarray, float]] | None = []

    def learn(
        self,
        build: Callable[[], ContinualGP],
        x: Float[np.ndarray, "N P"],
        y: Float[np.ndarray, " N"],
    ) -> None:
        """Fold the rows in, one after the other."""
        done = 0
        while self._first is not None and done < len(y):
            self._start(build, self._first, x[done], float(y[done]))
            done += 1
        if len(y) > done:
            assert self.model is not None
            one = len(y) - done == 1  # which alone needs no scan
            (self.model.update if one else self.model.update_many)(x[done:], y[done:])

    def _start(
        self,
        build: Callable[[], ContinualGP],
        first: list[tuple[np.ndarray, float]],
        x: Float[np.ndarray, " P"],
        y: float,
    ) -> None:
        rows = [*first, (x, y)]
        again = len(rows) & len(first) == 0  # a power of two
        model = build() if again or self.model is None else self.model
        taken = rows if again else rows[-1:]
        model.update(np.stack([row for row, _ in taken]), [value for _, value in taken])
        self.model, self._first = model, rows if len(rows) < _ENOUGH else None


def _number(name: Hashable, value: Any) -> float | None:
    """A feature's value; None where it is missing."""
    try:
        if isinstance(value, str):
            raise TypeError("text")
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            problem(
                f"a number for feature {name!r}",
                repr(value),
                "Encode it first, as with river's `OneHotEncoder`.",
            )
        ) from error
    return None if math.isnan(number) else number
