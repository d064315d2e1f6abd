"""Conditions of methods that need one input with equal steps."""

from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.likelihoods import Likelihood

_EVEN = 1e-6  # largest relative difference between steps that count as equal


def check_model(likelihood: Likelihood, lengthscale: float, variance: float) -> None:
    """Raise unless there is one latent parameter and the hyperparameters are positive."""
    if likelihood.latents != 1:
        got = f"{likelihood.latents} of {type(likelihood).__name__}"
        raise ConfigurationError(
            problem("one latent parameter", got, "Choose a likelihood that has one.")
        )
    if not (0 < lengthscale < np.inf and 0 < variance < np.inf):
        got = f"{lengthscale} and {variance}"
        raise ConfigurationError(
            problem("a positive lengthscale and variance", got, "They are not learned.")
        )


def one_column(x: Any) -> Float[np.ndarray, " N"]:
    """Inputs as a vector of finite numbers."""
    values = np.asarray(x, float)
    if values.ndim > 2 or values.shape[1:] not in ((), (1,)) or not np.isfinite(values).all():
        raise DataError(
            problem("one column of finite inputs", f"shape {values.shape}", "Choose a column.")
        )
    return values.reshape(-1)


def even_step(x: Float[np.ndarray, " N"], known: float) -> float:
    """The step between inputs. It must equal `known`, unless that is zero."""
    if len(x) < 2:
        raise DataError(
            problem(
                "at least two samples to begin with", f"{len(x)}", "Pass the first ones together."
            )
        )
    step = known or float(x[-1] - x[0]) / (len(x) - 1)
    allowed = _EVEN * step + 4 * np.finfo(float).eps * np.max(np.abs(x))  # the rounding of x
    steps = np.diff(x)
    if step <= 0 or np.any(np.abs(steps - step) > allowed):
        got = f"steps from {steps.min():g} to {steps.max():g}"
        raise DataError(
            problem(f"inputs that increase by {step:g} each", got, "Resample them, in order.")
        )
    return step


def check_observations(likelihood: Likelihood, count: int, y: Float[np.ndarray, " N"]) -> None:
    """Raise unless there is one possible observation per input."""
    if len(y) != count or not np.all(likelihood.valid(y)):
        expected = f"{count} values in the support of {type(likelihood).__name__}"
        got = f"{len(y)} values" if len(y) != count else f"{y[~likelihood.valid(y)][0]} among them"
        raise DataError(problem(expected, got, "Remove the other values."))
