"""Scaling: where kernels and channels start from, and on what scale.

Nothing is ever standardised: offsets and scales are kept beside the parameters, in the units of the
data, and everything that is asked of a model is in those units.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from streamgp.errors import ConfigurationError, problem
from streamgp.likelihoods import Likelihood
from streamgp.likelihoods.support import Real

Scale: TypeAlias = bool | Mapping[str, tuple[Any, Any]]

INPUTS = "inputs"
# Five values about 0 whose deviation is 1, and whose quartiles are a normal's of deviation 1.
_TYPICAL = np.array([-1.4302, -0.6745, 0.0, 0.6745, 1.4302])
# What is known of a usual observation, where that is not one.
_USUAL = {"error": 0.0, "censored": 0.0}


def check(scale: Scale, channels: Mapping[str, Likelihood]) -> None:
    """Raise where a setting makes no sense."""
    if isinstance(scale, bool):
        return
    if not isinstance(scale, Mapping):
        raise ConfigurationError(
            problem("scale True, False or a dictionary", repr(scale), "See `ContinualGP`.")
        )
    for name, pair in scale.items():
        if name != INPUTS and name not in channels:
            raise ConfigurationError(
                problem(
                    f"scales of {INPUTS!r} or of channels among {list(channels)}",
                    repr(name),
                    "Check the name.",
                )
            )
        if name != INPUTS and not isinstance(channels[name].support, Real):
            raise ConfigurationError(
                problem(
                    f"scales of {INPUTS!r} or of channels with real values",
                    f"{name!r}, which is {type(channels[name]).__name__}",
                    "Its latent parameter has a scale of its own: leave it out.",
                )
            )
        _check_pair(name, pair)


def _check_pair(name: str, pair: Any) -> None:
    try:
        centre, size = (np.asarray(part, float) for part in pair)
        fine = np.isfinite(centre).all() and np.isfinite(size).all() and np.all(size > 0)
        fine = fine and (name == INPUTS or centre.size == size.size == 1)
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise ConfigurationError(
            problem(
                f"(centre, scale) of {name!r}: numbers, the second positive",
                repr(pair),
                "Only inputs may have one per column.",
            )
        )


def of_inputs(
    scale: Scale, x: Float[np.ndarray, "N P"]
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """The origin and the spread of each input column."""
    width = x.shape[1]
    if scale is False:
        return np.zeros(width), np.ones(width)
    if isinstance(scale, Mapping) and INPUTS in scale:
        try:
            centre, size = (np.broadcast_to(part, width) for part in scale[INPUTS])
        except ValueError as error:
            raise ConfigurationError(
                problem(
                    f"one centre and scale, or {width}, one per input column",
                    repr(scale[INPUTS]),
                    "Count the input columns.",
                )
            ) from error
        return centre.astype(float), size.astype(float)
    spread = spread_of(x)
    return np.mean(x, axis=0), np.where(spread > 0, spread, 1.0)


def of_channel(
    scale: Scale, name: str, likelihood: Likelihood, y: Float[np.ndarray, "N ..."]
) -> tuple[Likelihood, Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """The likelihood, ready to learn, and the offset and scale of each latent parameter."""
    if scale is False:
        y = y[:0]
    given = scale.get(name) if isinstance(scale, Mapping) else None
    if given is None:
        return likelihood.start(y), *likelihood.location(y)
    centre, size = (float(np.asarray(part).item()) for part in given)
    typical = typical_rows(likelihood, centre, size)
    offset, scales = (np.array(part, float) for part in likelihood.location(typical))
    offset[0], scales[0] = centre, size
    return likelihood.start(typical), offset, scales


def typical_rows(likelihood: Likelihood, centre: float, size: float) -> Float[np.ndarray, "N ..."]:
    """A few observations with that mean and deviation."""
    return _rows(likelihood, centre + size * _TYPICAL)


def _rows(likelihood: Likelihood, values: Float[np.ndarray, " N"]) -> Float[np.ndarray, "N ..."]:
    """Values as observations: with no error, not censored, of weight one."""
    if likelihood.observation_dim == 1:
        return values
    others = [np.full(len(values), _USUAL.get(name, 1.0)) for name in likelihood.columns[1:]]
    return np.stack([values, *others], axis=1)


def spread_of(x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, " P"]:
    """Standard deviation of each column; zero where it is nothing but rounding."""
    spread = np.std(x, axis=0)
    rounding = 8 * np.finfo(float).eps * np.max(np.abs(x), axis=0)
    return np.where(spread > rounding, spread, 0.0)
