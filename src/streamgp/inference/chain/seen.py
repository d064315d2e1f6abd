"""What rows see of the states around them."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from streamgp.data.batch import Batch
from streamgp.inference.chain.known import Known
from streamgp.inference.chain.law import Between
from streamgp.inference.chain.stretch import Pairs, Weights
from streamgp.inference.posterior import Marginals, add
from streamgp.inference.sites import inner
from streamgp.model.mixing import Features, Mixed, basis_design
from streamgp.model.multitask import MultiTaskGP


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What rows see of the intervals that they lie in.

    Attributes:
        model: Plain.
        batch: The rows.
        between: The latent functions at the rows, from the states at the ends of their intervals.
        design: f = offset + design·x + basis·β + slack, x = (a, c) scaled.
        values: The mean functions of each row's channel.
        basis: The part of f that comes from them.
        features: Offset and slack of the rows.
    """

    model: MultiTaskGP
    batch: Batch
    between: Between
    design: Float[np.ndarray, "R dd"]
    values: Float[np.ndarray, "N B"]
    basis: Float[np.ndarray, "R K"]
    features: Features

    @classmethod
    def of(
        cls, known: Known, model: MultiTaskGP, batch: Batch, ends: tuple[np.ndarray, np.ndarray]
    ) -> "Seen":
        """Rows between two states each.

        Args:
            known: The chain.
            model: Plain.
            batch: The rows.
            ends: Where the interval of each row begins, and where it ends.
        """
        law, (left, right) = known.law, ends
        between = law.between(left, batch.x[:, 0], right)
        return cls.through(known, model, batch, between)

    @classmethod
    def through(cls, known: Known, model: MultiTaskGP, batch: Batch, between: Between) -> "Seen":
        """Rows that see states in some way."""
        values = model.basis(batch)
        basis = basis_design(model, batch, values, known.mixing.reading.spreads)
        mixed = Mixed.of(model, batch, basis)
        scaled, owner = between.design * known.law.scale_of_two, known.law.owner_of_two
        design = np.empty((batch.flat_size, scaled.shape[1]))
        for run, w in zip(batch.runs, mixed.weights, strict=True):
            part = w[:, :, owner] * scaled[run.rows, None, :]
            design[run.flat] = part.reshape(-1, scaled.shape[1])
        features = Features(design, mixed.slack(between.open), mixed.offset)
        return cls(model, batch, between, design, values, basis, features)

    def of_latents(self, values: Int[np.ndarray, " N"]) -> Int[np.ndarray, " R"]:
        """Numbers of rows as numbers of their latent parameters."""
        if self.batch.flat_size == self.batch.size:
            return values
        runs = [np.repeat(values[run.rows], run.latents) for run in self.batch.runs]
        return np.concatenate(runs)

    def marginals(self, pairs: Pairs, weights: Weights) -> Marginals:
        """q(f) of each row, from q of the states around it and of β; one pair per row."""
        flat = self.of_latents(np.arange(self.batch.size))
        by_g = np.einsum("ri,rik->rk", self.design, pairs.mean[flat])
        bent = np.einsum("ri,rij->rj", self.design, pairs.covariance[flat])
        return self._marginals(by_g, bent, weights)

    def marginals_of_one(self, pair: Pairs, weights: Weights) -> Marginals:
        """The same where all rows see one pair of states."""
        by_g, bent = self.design @ pair.mean[0], self.design @ pair.covariance[0]
        return self._marginals(by_g, bent, weights)

    def _marginals(
        self, by_g: Float[np.ndarray, "R k"], bent: Float[np.ndarray, "R dd"], weights: Weights
    ) -> Marginals:
        """From the means of f as functions of g, less offsets and mean functions, and design·V."""
        batch = self.batch
        by_g[:, 1:] += self.basis
        centred = by_g @ weights.first
        own = inner(batch, bent, self.design)
        of_beta = by_g[:, 1:]
        explained = add(own, inner(batch, of_beta @ weights.covariance, of_beta))
        return Marginals(
            mean=self.features.offset + centred,
            covariance=add(explained, self.features.slack),
            centred=centred,
            explained=explained,
        )
