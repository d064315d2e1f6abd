"""Estimators for river. They need `pip install 'streamgp[river]'`.

Features are numbers in a dictionary. Their names are those of the first sample that was learned. A
feature with another name is ignored. A feature that is missing (or None, or NaN) takes the mean of
its values so far.
"""

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError("streamgp.river needs river: pip install 'streamgp[river]'") from error

from streamgp.river.classifier import ContinualGPClassifier
from streamgp.river.regressor import ContinualGPRegressor

__all__ = ["ContinualGPClassifier", "ContinualGPRegressor"]
