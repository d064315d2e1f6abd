"""What the two estimators share: their settings, and features as columns."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from river import base, stats

from streamgp.adapters import Learning, build
from streamgp.errors import DataError, problem
from streamgp.gp import ContinualGP
from streamgp.kernels import Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting

Sample = Mapping[Hashable, Any]


class Estimator(base.Estimator):
    """The settings of both estimators, and their features."""

    def __init__(
        self,
        kernel: Kernel | None = None,
        tolerance: float | None = None,
        budget: int | None = None,
        learning: Learning = "vem",
        forgetting: float | Forgetting = 1.0,
        seed: int = 0,
        latents: Latents | None = None,
        inducing: Any = None,
    ):
        self.kernel = kernel
        self.tolerance = tolerance
        self.budget = budget
        self.learning = learning
        self.forgetting = forgetting
        self.seed = seed
        self.latents = latents
        self.inducing = inducing
        # The mean of each feature, in the order of the model's input columns.
        self._means: dict[Hashable, stats.Mean] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"budget": 16, "learning": None}

    def learn_one(self, x: Sample, y: Any) -> None:
        """Learn one sample.

        Args:
            x: The features, numbers by name.
            y: The target.

        Raises:
            DataError: If a feature is not a number.
            ConfigurationError: If the settings contradict each other.
        """
        self._learn([x], [y])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame one after the other, as `learn_one` would.

        Args:
            X: The features, one column each.
            y: The targets, one per row.

        Raises:
            DataError: If a feature is not a number.
            ConfigurationError: If the settings contradict each other.
        """
        self._learn(X.to_dict(orient="records"), list(y))

    @abstractmethod
    def _learn(self, samples: list[Sample], y: list[Any]) -> None:
        """Learn samples in order."""

    def _build(self, likelihood: Likelihood) -> ContinualGP:
        return build(
            {"y": likelihood},
            kernel=self.kernel,
            latents=self.latents,
            inducing=self.inducing,
            tolerance=self.tolerance,
            budget=self.budget,
            learning=self.learning,
            forgetting=self.forgetting,
            seed=self.seed,
        )

    def _inputs(self, samples: list[Sample], *, learn: bool) -> Float[np.ndarray, "N P"]:
        """The features as one row per sample.

        With `learn`, each sample counts in the means before the next one is read.
        """
        if learn and not self._means and samples:
            # They are sorted, so that the order of a dictionary does not matter.
            self._means = {name: stats.Mean() for name in sorted(samples[0], key=repr)}
        rows = []
        for sample in samples:
            seen = {n: v for n in self._means if (v := _number(n, sample.get(n))) is not None}
            for name in seen if learn else ():
                self._means[name].update(seen[name])
            rows.append([seen.get(name, mean.get()) for name, mean in self._means.items()])
        return np.asarray(rows, float).reshape(len(rows), len(self._means))


def _number(name: Hashable, value: Any) -> float | None:
    """The value of a feature; None if it is missing."""
    try:
        if isinstance(value, str):
            raise TypeError("text")
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            problem(
                f"a number for feature {name!r}",
                repr(value),
                "Encode it first, for example with river's `OneHotEncoder`.",
            )
        ) from error
    return None if math.isnan(number) else number
