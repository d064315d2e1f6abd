"""A probabilistic regressor for skpro. It needs `pip install 'streamgp[skpro]'`."""

try:
    import skpro  # noqa: F401
except ImportError as error:
    raise ImportError("streamgp.skpro needs skpro: pip install 'streamgp[skpro]'") from error

from streamgp.skpro.regressor import ContinualGPRegressor

__all__ = ["ContinualGPRegressor"]
