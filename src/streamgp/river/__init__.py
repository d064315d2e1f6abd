"""Estimators for river. Needs river (`pip install streamgp[river]`).

Features are numbers in a dictionary. Their names are those of the first sample learned: names
that appear later are ignored, and a feature that is absent (or None, or NaN) takes its mean so far.
"""

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError("streamgp.river needs river: pip install 'streamgp[river]'") from error

from streamgp.river.classifier import ContinualGPClassifier
from streamgp.river.regressor import ContinualGPRegressor

__all__ = ["ContinualGPClassifier", "ContinualGPRegressor"]
