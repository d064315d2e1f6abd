"""Estimators for scikit-learn. They need `pip install 'streamgp[sklearn]'`."""

try:
    from sklearn.utils.validation import validate_data  # noqa: F401 (since 1.6)
except ImportError as error:
    raise ImportError(
        "streamgp.sklearn needs scikit-learn 1.6 or newer: pip install 'streamgp[sklearn]'"
    ) from error

from streamgp.sklearn.classifier import ContinualGPClassifier
from streamgp.sklearn.regressor import ContinualGPRegressor

__all__ = ["ContinualGPClassifier", "ContinualGPRegressor"]
