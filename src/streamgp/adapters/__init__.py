"""What the estimators for other libraries share."""

from streamgp.adapters.settings import TOLERANCE, Learning, Means, build, build_for

__all__ = ["TOLERANCE", "Learning", "Means", "build", "build_for"]
