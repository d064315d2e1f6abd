"""DenseState: kept rows over any inputs, and what follows from them."""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.components import Parts
from streamgp.inference.dense.design import Design, covariance, joined, variances
from streamgp.inference.dense.factor import Factor
from streamgp.inference.dense.setting import Joint, left_of, not_negative, observed
from streamgp.inference.kept import SIZE, Kept, cut
from streamgp.inference.kept import joined as joined_rows
from streamgp.inference.on_rows import StateOnRows
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RunBlocks, inner
from streamgp.model.composition import Composition
from streamgp.model.mixing import offsets
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import free_vector, unwrap
from streamgp.registry import storable


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class DenseState(StateOnRows):
    """All that is kept of the past: hyperparameters and rows.

    Attributes:
        model: The hyperparameters, still wrapped: constrained, with priors.
        blocks: The kept rows, in the order in which they came.
        heard: The observations of each channel that they stand for, faded ones in part.
        closed: How many of the first rows have sites that do not change as others come.
        curvature: What M steps have learned of their objective: an inverse Hessian.
    """

    model: MultiTaskGP
    blocks: tuple[Kept, ...]
    heard: Float[np.ndarray, " D"]
    closed: int = 0
    curvature: Float[np.ndarray, "T T"] | None = None

    judged: ClassVar[int] = 256

    # What follows from the fields is computed once, when it is first asked for.

    @functools.cached_property
    def plain(self) -> MultiTaskGP:
        """The model with plain numbers for its parameters."""
        return unwrap(self.model)

    @functools.cached_property
    def kept(self) -> Kept:
        """All kept rows."""
        return joined_rows(list(self.blocks))

    @functools.cached_property
    def closed_factor(self) -> Factor:
        """The rows whose sites do not change, as scalar observations."""
        kernels = self.plain.latent_kernels
        return Factor.of(kernels, *self.scalars(self.kept.take(slice(self.closed))))

    @functools.cached_property
    def factor(self) -> Factor:
        """All rows as scalar observations."""
        return self.closed_factor.appended(*self.scalars(self.kept.take(slice(self.closed, None))))

    def scalars(self, rows: Kept) -> tuple[Design, Float[np.ndarray, " R"]]:
        """The sites of rows as scalar observations."""
        batch = rows.batch(self.plain)
        return observed(self.plain, batch, rows.sites(batch))

    # -- other rows ------------------------------------------------------------------------------

    def following(
        self,
        rows: Kept,
        closed: int,
        *,
        since: int = 0,
        factor: Factor | None = None,
        **changes: Any,
    ) -> "DenseState":
        """The state with other rows from one on.

        Args:
            rows: These rows.
            closed: How many of all rows have sites that do not change any more.
            since: The number of the first row that differs.
            factor: That of the closed rows, if it is known.
            changes: Of other fields.
        """
        whole = min(since // SIZE, len(self.blocks))  # full blocks stay the same objects
        rest = self.kept.take(slice(whole * SIZE, since))
        blocks = (*self.blocks[:whole], *cut(joined_rows([rest, rows])))
        after = self.replace(blocks=blocks or (rows,), closed=closed, **changes)
        known: dict[str, Any] = {} if after.model is not self.model else {"plain": self.plain}
        if factor is not None:
            known["closed_factor"] = factor
        vars(after).update(known)
        return after

    def with_rows(self, rows: list[Kept], **changes: Any) -> "DenseState":
        """The state with further rows, with sites as they are."""
        more = joined_rows(rows)
        return self.following(more, self.size + more.size, since=self.size, **changes)

    # -- what the rows say -----------------------------------------------------------------------

    def meeting(self, batch: Batch, factor: Factor | None = None) -> Joint:
        """Rows and what is known of them together, given all kept rows or those of a factor."""
        factor = self.factor if factor is None else factor
        design = Design.of(self.plain, batch)
        explained = factor.explained(design)
        own = covariance(factor.kernels, design, design)
        own -= explained.T @ explained
        return Joint(self.plain, batch, explained.T @ factor.z, own, explained)

    def marginals(self, batch: Batch) -> Marginals:
        """q(f) of rows anywhere, given all kept rows."""
        design, model = Design.of(self.plain, batch), self.plain
        explained = self.factor.explained(design)
        mean = explained.T @ self.factor.z
        spread = left_of(batch, prior_blocks(model, batch, design), explained)
        return Marginals(offsets(model, batch) + mean, spread, mean, spread)

    def joint(
        self, batches: list[Batch]
    ) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, "R R"]]:
        """Mean and covariance of the latent parameters of all rows of some batches together."""
        design = joined([Design.of(self.plain, batch) for batch in batches])
        explained = self.factor.explained(design)
        own = covariance(self.factor.kernels, design, design) - explained.T @ explained
        offset = np.concatenate([offsets(self.plain, batch) for batch in batches])
        return offset + explained.T @ self.factor.z, own

    @functools.cached_property
    def weights_explained(self) -> Float[np.ndarray, "R K"]:
        """ℓ of the whitened weights β of mean functions, of all latent parameters."""
        return self.factor.explained(self.of_weights)

    @property
    def of_weights(self) -> Design:
        """The whitened weights β as numbers."""
        count = self.plain.basis_spreads().size
        x = np.zeros((count, self.kept.x.shape[1]))
        return Design(x, np.zeros((count, sum(self.model.draws))), np.eye(count))

    @functools.cached_property
    def mean_weights(self) -> Float[np.ndarray, "O B"]:
        """E_q[β]: the expected weights of each latent parameter's mean functions."""
        spreads = self.plain.basis_spreads()
        return spreads * (self.weights_explained.T @ self.factor.z).reshape(spreads.shape)

    def latents(
        self, x: Float[np.ndarray, "N P"]
    ) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q Q"]]:
        """Mean and covariance of the latent functions at some inputs."""
        count, none = sum(self.model.draws), self.plain.basis_spreads().size
        centred = np.repeat(x - self.plain.origin, count, axis=0)
        weights = np.tile(np.eye(count), (len(x), 1))
        design = Design(centred, weights, np.zeros((len(centred), none)))
        explained = self.factor.explained(design)
        mean = (explained.T @ self.factor.z).reshape(len(x), count)
        half = explained.T.reshape(len(x), count, -1)
        spread = -(half @ np.swapaxes(half, 1, 2))
        diagonal = np.arange(count)
        own = variances(self.factor.kernels, design).reshape(len(x), count)
        spread[:, diagonal, diagonal] += own
        return mean, not_negative(spread)

    def parts(self, x: Float[np.ndarray, "N P"], composition: Composition) -> Parts:
        """The parts of latent functions, and the weights of mean functions."""
        factor, centred = self.factor, x - self.plain.origin
        count = len(composition.parts)
        explained = np.empty((count, factor.size, len(x)))
        covariance = np.zeros((len(x), count, count))
        for p, (kernel, q) in enumerate(zip(composition.summands, composition.latent, strict=True)):
            cross = factor.rows.weights[:, q, None] * kernel.matrix(factor.rows.x, centred)
            explained[p] = factor.solve(cross)
            covariance[:, p, p] = kernel.diagonal(centred)
        covariance -= np.einsum("prn,srn->nps", explained, explained)
        weights = self.weights_explained
        return Parts(
            mean=np.einsum("prn,r->np", explained, factor.z),
            covariance=covariance,
            across=-np.einsum("prn,rk->npk", explained, weights),
            weights=weights.T @ factor.z,
            weights_covariance=np.eye(weights.shape[1]) - weights.T @ weights,
        )

    def with_channel(self, model: MultiTaskGP, latents: int) -> "DenseState":
        """The same with a further channel, the last of that model, of which nothing is known."""
        none = Kept.none(unwrap(model), self.kept.x.shape[1])
        blocks = tuple(block.widened(none) for block in self.blocks)
        return DenseState(model, blocks, np.append(self.heard, 0.0), self.closed)

    def replace(self, **changes: Any) -> "DenseState":
        """A copy with some fields changed, by name, and nothing that follows from the others."""
        return DenseState(**{**self.__getstate__(), **changes})

    def is_finite(self, before: "DenseState | None" = None) -> bool:
        """Whether all numbers are finite, those that it shares with another state apart."""
        arrays = [self.heard, self.closed_factor.z]
        if before is None or self.model is not before.model:
            arrays.append(free_vector(self.model))
        known = () if before is None else before.blocks
        for number, block in enumerate(self.blocks):
            if number >= len(known) or block is not known[number]:
                arrays += [block.x, block.count, block.energy, block.linear, block.precision]
        return math.isfinite(np.concatenate([array.ravel() for array in arrays]).sum())


def prior_blocks(model: MultiTaskGP, batch: Batch, design: Design) -> RunBlocks:
    """The covariance of each row's latent parameters before any data."""
    diagonals = [kernel.diagonal(design.x) for kernel in model.latent_kernels]
    scaled = design.weights * np.sqrt(np.stack(diagonals, axis=1))
    found = inner(batch, scaled, scaled)
    return tuple(
        a + b for a, b in zip(found, inner(batch, design.basis, design.basis), strict=True)
    )
