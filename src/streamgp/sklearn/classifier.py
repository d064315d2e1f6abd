"""Classification, of two classes or more."""

from typing import Any, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.likelihoods import Bernoulli, Categorical
from streamgp.sklearn.base import Estimator


class ContinualGPClassifier(ClassifierMixin, Estimator):
    """A Gaussian process classifier that is fitted at once or by parts.

    Two classes are a Bernoulli channel, more a categorical one with a latent parameter each.

    Args:
        kernel: of the latent functions: a kernel of streamgp or tinygp; by default an RBF.
        latents: how many latent functions; by default one for two classes, else three.
        tolerance: the share of prior variance that inducing points may leave open.
        budget: the most inducing points of a latent function.
        learning: "vem", a `VEM`, or None to leave hyperparameters where they start.
        forgetting: below 1, what is left of the past after each `partial_fit`.
        random_state: of the random start of more than two classes.

    Example:
        >>> import numpy as np
        >>> from streamgp.sklearn import ContinualGPClassifier
        >>> X = np.linspace(-2, 2, 40)[:, None]
        >>> model = ContinualGPClassifier().fit(X, np.where(X[:, 0] > 0, "right", "left"))
        >>> model.predict([[-1.0], [1.0]]).tolist()
        ['left', 'right']
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from these rows alone."""
        X, y = self._checked(X, y, reset=True)
        return self._start(X, y, np.unique(y))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from further rows; the first call must name all `classes` there will be."""
        first = not hasattr(self, "model_")
        if first and classes is None:
            raise ConfigurationError(
                problem("all classes at the first `partial_fit`", "none", "Pass `classes=`.")
            )
        X, y = self._checked(X, y, reset=first)
        if first:
            return self._start(X, y, np.unique(classes))
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ConfigurationError(
                problem(f"the classes {self.classes_.tolist()}", f"{classes}", "Name them once.")
            )
        self.model_.update(X, _encoded(y, self.classes_))
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "N K"]:
        """The probability of each class, in the order of `classes_`."""
        x = self._inputs(X)
        probabilities = self.model_.predict(x).probabilities
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, reset=reset, dtype=float)
        check_classification_targets(y)
        return X, y

    def _start(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> Self:
        if len(classes) < 2:
            raise DataError(problem("at least two classes", "one class", "Give rows of each."))
        two = len(classes) == 2
        model = self._build({"y": Bernoulli() if two else Categorical(len(classes))})
        model.update(X, _encoded(y, classes))
        self.model_, self.classes_ = model, classes
        return self


def _encoded(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label among the sorted classes."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise DataError(
            problem(f"labels among {classes.tolist()}", repr(unknown[0]), "Name it at first.")
        )
    return np.searchsorted(classes, y)
