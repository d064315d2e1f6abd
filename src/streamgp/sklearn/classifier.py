"""Classification into two classes or more."""

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
    """A Gaussian process classifier that learns all rows at once or part by part.

    Two classes are one Bernoulli channel. More classes are one categorical channel, which has one
    latent parameter per class.

    Args:
        kernel: The kernel of every latent function, from streamgp or tinygp; by default an RBF.
        latents: The number of latent functions, by default one for two classes and three for more;
            or, instead of `kernel`, a kernel or a list of kernels as in `ContinualGP`.
        inducing: A placement strategy as in `ContinualGP`. By default there is none: rows are kept.
        tolerance: Instead of `inducing`: the part of its prior variance that inducing points may
            leave unexplained at an input. A smaller tolerance makes more inducing points.
        budget: Instead of `inducing`: the largest number of inducing points of any latent function.
        learning: "vem", a `VEM`, or None to leave all hyperparameters where they start.
        forgetting: Below 1, the part of what the past said that is left after each `partial_fit`;
            or a `Forgetting`.
        random_state: The seed of the random start of models with more than two classes.

    Attributes:
        model_: The `ContinualGP`, once data have been learned.
        classes_: The classes, sorted.

    Raises:
        ConfigurationError: When data are learned, if the settings contradict each other.

    Examples:
        >>> import numpy as np
        >>> from streamgp.sklearn import ContinualGPClassifier
        >>> X = np.linspace(-2, 2, 40)[:, None]
        >>> model = ContinualGPClassifier().fit(X, np.where(X[:, 0] > 0, "right", "left"))
        >>> model.predict([[-1.0], [1.0]]).tolist()
        ['left', 'right']
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from these rows alone.

        Args:
            X: Inputs, of shape (N, P).
            y: Labels, of shape (N,).

        Returns:
            The estimator itself.

        Raises:
            DataError: If there are fewer than two classes.
            ConfigurationError: If the settings contradict each other.
        """
        X, y = self._checked(X, y, reset=True)
        return self._start(X, y, np.unique(y))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from further rows.

        Args:
            X: Inputs, of shape (N, P).
            y: Labels, of shape (N,).
            classes: All classes that will ever come. The first call needs them.

        Returns:
            The estimator itself.

        Raises:
            DataError: If a label is not among the classes.
            ConfigurationError: If the first call has no classes, or a later call has other ones.
        """
        first = not hasattr(self, "model_")
        if first and classes is None:
            raise ConfigurationError(
                problem("all classes in the first `partial_fit`", "none", "Pass `classes=`.")
            )
        X, y = self._checked(X, y, reset=first)
        if first:
            return self._start(X, y, np.unique(classes))
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ConfigurationError(
                problem(
                    f"the classes of the first call, {self.classes_.tolist()}",
                    f"{classes}",
                    "Leave `classes` out of later calls.",
                )
            )
        self.model_.update(X, _encoded(y, self.classes_))
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "N K"]:
        """Predict the probability of each class.

        Args:
            X: Inputs, of shape (N, P).

        Returns:
            Probabilities, of shape (N, K), with the classes in the order of `classes_`.
        """
        x = self._inputs(X)
        probabilities = self.model_.predict(x).probabilities
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class of each row.

        Args:
            X: Inputs, of shape (N, P).

        Returns:
            Labels, of shape (N,).
        """
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, reset=reset, dtype=float)
        check_classification_targets(y)
        return X, y

    def _start(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> Self:
        if len(classes) < 2:
            raise DataError(
                problem("at least two classes", "one class", "Add rows of another class.")
            )
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
            problem(
                f"labels among {classes.tolist()}",
                repr(unknown[0]),
                "Name all classes in the first `partial_fit`.",
            )
        )
    return np.searchsorted(classes, y)
