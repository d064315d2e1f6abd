"""Classification that learns one sample at a time."""

from typing import Any

import numpy as np
from jaxtyping import Float
from river import base

from streamgp.adapters import Learning
from streamgp.kernels import Kernel
from streamgp.likelihoods import Bernoulli
from streamgp.model.specification import Latents
from streamgp.online.forgetting import Forgetting
from streamgp.river.base import Estimator, Sample
from streamgp.river.stream import Stream


class ContinualGPClassifier(Estimator, base.MiniBatchClassifier):
    """A Gaussian process classifier that learns one sample at a time.

    New classes may appear at any time. Classes are kept in the order in which they appear. Each of
    them but the last has a Bernoulli model that answers one question: is it this class, or one that
    appeared later? Two classes need one model, and each further class adds one. The probability of
    a class is a product of answers, and the probabilities sum to one.

    Args:
        kernel: A kernel of streamgp or tinygp; by default an RBF with one lengthscale per feature.
        tolerance: Instead of `inducing`: the part of its prior variance that inducing points may
            leave unexplained at an input. A smaller tolerance makes more inducing points.
        budget: Instead of `inducing`: the largest number of inducing points of any latent function
            of each question.
        learning: "vem", a `VEM`, or None to leave all hyperparameters where they start.
        forgetting: Below 1, the part of what the past said that is left after each sample; or a
            `Forgetting`.
        seed: The seed of the order in which large batches are learned.
        latents: The number of latent functions of each question, by default one; or, instead of
            `kernel`, a kernel or a list of kernels as in `ContinualGP`.
        inducing: A placement strategy as in `ContinualGP`. By default there is none: rows are kept.

    Raises:
        ConfigurationError: When the first sample is learned, if the settings contradict each other.

    Examples:
        >>> from streamgp.river import ContinualGPClassifier
        >>> model = ContinualGPClassifier(learning=None)
        >>> for t in (1, 7, 4, 9, 2, 6, 3, 8):
        ...     model.learn_one({"t": t}, "late" if t > 5 else "early")
        >>> model.predict_one({"t": 1.5}), model.predict_one({"t": 8.5})
        ('early', 'late')
    """

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
        super().__init__(kernel, tolerance, budget, learning, forgetting, seed, latents, inducing)
        self._classes: dict[Any, int] = {}  # the position of each class in the order of appearance
        self._questions: list[Stream] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Sample, **kwargs: Any) -> dict[Any, float]:
        """Predict the probability of every class that has appeared so far.

        Args:
            x: The features, numbers by name.
            **kwargs: Ignored; river passes them.

        Returns:
            Probabilities by class. The dictionary is empty before the first sample.
        """
        if not self._classes:
            return {}
        (row,) = self._probabilities([x]).tolist()
        return dict(zip(self._classes, row, strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """Predict the probabilities of the classes for the rows of a data frame.

        Args:
            X: The features, one column each.

        Returns:
            A data frame of probabilities with one column per class, and the index of `X`.
        """
        import pandas as pd

        rows = self._probabilities(X.to_dict(orient="records"))
        return pd.DataFrame(rows, columns=list(self._classes), index=X.index)

    def _learn(self, samples: list[Sample], y: list[Any]) -> None:
        x = self._inputs(samples, learn=True)
        if not x.size:  # no feature is known yet
            return
        index = np.array([self._classes.setdefault(label, len(self._classes)) for label in y])
        for q in range(max(len(self._classes) - 1, 1)):
            asked = index >= q
            if q == len(self._questions):  # the question is first asked when a later class appears
                asked &= (np.arange(len(index)) >= np.argmax(index > q)) | (q == 0)
                self._questions.append(Stream())
            answers = (index[asked] == q).astype(float)
            self._questions[q].learn(lambda: self._build(Bernoulli()), x[asked], answers)

    def _probabilities(self, samples: list[Sample]) -> Float[np.ndarray, "N K"]:
        """The answer to each class's question, times what the earlier questions leave."""
        x, left, columns = self._inputs(samples, learn=False), np.ones(len(samples)), []
        for question in self._questions[: len(self._classes) - 1]:
            assert question.model is not None
            yes = np.clip(question.model.predict(x).mean, 0.0, 1.0)
            columns.append(left * yes)
            left = left * (1.0 - yes)
        return np.stack([*columns, left], axis=-1)[:, : len(self._classes)]
