"""What the estimators for other libraries share."""

from streamgp.adapters.settings import Learning, Means, build, build_for

__all__ = ["Learning", "Means", "build", "build_for"]
