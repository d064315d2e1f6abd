"""What the estimators for other libraries share."""

from streamgp.adapters.settings import TOLERANCE, Learning, Means, build

__all__ = ["TOLERANCE", "Learning", "Means", "build"]
