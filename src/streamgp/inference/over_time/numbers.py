"""How the numbers of states depend on the parameters of kernels."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.inference.over_time.law import Law
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, replaced, unwrap, with_free

DIFFERENCE = 1e-5  # in log units
_FAR = 0.37  # in log units: where a map that is affine is looked at once more
_SAME = 1e-12


class Affine(NamedTuple):
    """Logarithms of numbers as constant + slope·θ."""

    constant: Float[np.ndarray, " n"]
    slope: Float[np.ndarray, "n t"]


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
    """Logarithms of the numbers of all states as functions of the kernels' free parameters θ.

    For most kernels they are affine, as the numbers are parameters or products of them. Then the
    derivatives are constant. Else they are found by differences.

    Attributes:
        wrapped: A model with these kernels, of any θ.
    """

    wrapped: MultiTaskGP

    @functools.cached_property
    def affine(self) -> Affine | None:
        """The map, if it is affine."""
        theta = free_vector(self.wrapped.kernels)
        with np.errstate(all="ignore"):
            here = self._at(theta)
            steps = [self._at(theta + step) - here for step in np.eye(len(theta))]
            slope = np.round(np.reshape(steps, (len(theta), len(here))).T, 9)
            far = theta + _FAR * (-1.0) ** np.arange(len(theta))
            constant = here - slope @ theta
            apart = np.max(np.abs(self._at(far) - constant - slope @ far), initial=0.0)
        return Affine(constant, slope) if apart < _SAME * (1 + np.abs(here).max()) else None

    def jacobian(self, theta: Float[np.ndarray, " t"]) -> Float[np.ndarray, "n t"]:
        """Derivatives at some parameters."""
        if self.affine is not None:
            return self.affine.slope
        columns = [
            (self._at(theta + step) - self._at(theta - step)) / (2 * DIFFERENCE)
            for step in DIFFERENCE * np.eye(len(theta))
        ]
        return np.stack(columns, axis=1)

    def _at(self, theta: Float[np.ndarray, " t"]) -> Float[np.ndarray, " n"]:
        kernels = unwrap(with_free(self.wrapped.kernels, theta))
        return np.log(Law.of(replaced(self._plain, kernels=kernels)).numbers)

    @functools.cached_property
    def _plain(self) -> MultiTaskGP:
        return unwrap(self.wrapped)
