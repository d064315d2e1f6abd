"""A forecaster for sktime. It needs `pip install 'streamgp[sktime]'`."""

try:
    import skpro  # noqa: F401
    import sktime  # noqa: F401
except ImportError as error:
    raise ImportError(
        "streamgp.sktime needs sktime and skpro: pip install 'streamgp[sktime]'"
    ) from error

from streamgp.sktime.forecaster import ContinualGPForecaster

__all__ = ["ContinualGPForecaster"]
