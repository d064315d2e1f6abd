"""Cells seen through features: sums over past rows under any kernels, at any inducing points.

With φ(x̄) the features at the mean input x̄ of a cell, the sums of `past` are Σ b φ, Σ P φφᵀ and
Σ P·open over cells. They follow the kernels and the points, and so does their gradient.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.bound_gradient import kernel_gradient, point_gradient
from streamgp.inference.cells import Cells
from streamgp.inference.past import Past, add_sites, empty
from streamgp.inference.prior import Prior
from streamgp.inference.sites import times
from streamgp.model.mixing import Mixed, Projection, basis_design
from streamgp.model.multitask import MultiTaskGP


@dataclasses.dataclass(frozen=True, eq=False)
class SeenCells:
    """Cells and the prior through which they are seen. The posterior is joint.

    Attributes:
        cells: The averages of past rows.
        batch: The same as sorted rows: `cells.batch(model)`.
        prior: At some inducing points, under some kernels.
        energy: What of each channel's energy is not the function's within its cells (`scatter`).
    """

    cells: Cells
    batch: Batch
    prior: Prior
    energy: Float[np.ndarray, " D"]

    @functools.cached_property
    def cross(self) -> tuple[Float[np.ndarray, "_ C"], ...]:
        """K(Z, x̄) of each latent function."""
        return self.prior.cross(self.batch.x)

    @functools.cached_property
    def projection(self) -> Projection:
        """V = L⁻¹K(Z, x̄), and the variance that is left open."""
        return self.prior.project(self.batch.x, self.cross)

    @property
    def _basis(self) -> Float[np.ndarray, "C B"]:
        return self.cells.basis[self.batch.order]

    def past(self, model: MultiTaskGP) -> Past:
        """The sums over all past rows."""
        past = empty(model.outputs, self.prior.sizes, self.cells.basis.shape[1])
        features = np.concatenate([*self.projection.values, self._basis.T])
        for group, linear, precision in self.cells.by_channel(self.batch):
            left = self.projection.open[:, group.rows]
            own = features[:, group.rows]
            add_sites(past, model.outputs, group, own, linear, precision, left)
        return dataclasses.replace(past, count=self.cells.count.copy(), energy=self.energy.copy())

    def design(self, model: MultiTaskGP) -> tuple[Mixed, Float[np.ndarray, "R S"]]:
        """How a plain model mixes the cells, and their latent parameters as linear maps of v."""
        basis = basis_design(model, self.batch, self._basis)
        mixed = Mixed.of(model, self.batch, basis)
        return mixed, mixed.features(self.projection).design

    def by_projection(
        self,
        model: MultiTaskGP,
        by_linear: Float[np.ndarray, " S"],
        by_precision: Float[np.ndarray, "S S"],
    ) -> Projection:
        """Derivatives of the bound by the projection, from those by λ and Λ.

        With λ = Aᵀb and Λ = AᵀPA they are b λ̄ᵀ + 2PAΛ̄ by A, and −½P by the open covariance.
        """
        mixed, design = self.design(model)
        rows = self.cells.sites(model, self.batch)
        by_design = 2 * times(self.batch, rows.precision, design @ by_precision)
        by_design += np.outer(rows.linear, by_linear)
        by_slack = tuple(-0.5 * own for own in rows.precision)
        return mixed.adjoint(self.projection, by_design, by_slack)[0]

    def by_kernels(self, by_projection: Projection) -> list[dict[str, Any]]:
        """Derivatives by the parameters of each latent function's kernel."""
        return kernel_gradient(self.prior, self.batch.x, self.cross, self.projection, by_projection)

    def by_points(self, by_projection: Projection) -> list[Float[np.ndarray, "_ P"]]:
        """Derivatives by the inducing points of each latent function."""
        return point_gradient(self.prior, self.batch.x, self.cross, self.projection, by_projection)
