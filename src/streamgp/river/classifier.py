"""Classification, one sample at a time."""

from typing import Any

import numpy as np
from jaxtyping import Float
from river import base

from streamgp.adapters import Learning
from streamgp.kernels import Kernel
from streamgp.likelihoods import Bernoulli
from streamgp.online.forgetting import Forgetting
from streamgp.river.base import Estimator, Sample
from streamgp.river.stream import Stream


class ContinualGPClassifier(Estimator, base.MiniBatchClassifier):
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
        >>> model = ContinualGPClassifier(learning=None)
        >>> for t in (1, 7, 4, 9, 2, 6, 3, 8):
        ...     model.learn_one({"t": t}, "late" if t > 5 else "early")
        >>> model.predict_one({"t": 1.5}), model.predict_one({"t": 8.5})
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
        self._classes: dict[Any, int] = {}  # by order of appearance
        self._questions: list[Stream] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Sample, **kwargs: Any) -> dict[Any, float]:
        """The probability of every class seen so far; empty before the first."""
        if not self._classes:
            return {}
        (row,) = self._probabilities([x]).tolist()
        return dict(zip(self._classes, row, strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """A data frame of probabilities, a column a class."""
        import pandas as pd

        rows = self._probabilities(X.to_dict(orient="records"))
        return pd.DataFrame(rows, columns=list(self._classes), index=X.index)

    def _learn(self, samples: list[Sample], y: list[Any]) -> None:
        x = self._inputs(samples, learn=True)
        if not x.size:  # nothing to go by yet
            return
        index = np.array([self._classes.setdefault(label, len(self._classes)) for label in y])
        for q in range(max(len(self._classes) - 1, 1)):
            asked = index >= q
            if q == len(self._questions):  # first asked when a later class appears
                asked &= (np.arange(len(index)) >= np.argmax(index > q)) | (q == 0)
                self._questions.append(Stream())
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
