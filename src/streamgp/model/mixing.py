"""Mixing: how channels combine latent functions. All that knows the rule is in this file.

The linear model of coregionalisation (Eq. 13) with mean functions:
f_dj(x) = offset_dj + h_d(x)·β_dj + Σ_q w_djq u_q(x).
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.model.multitask import MultiTaskGP


class Projection(NamedTuple):
    """What whitened inducing values v say of the latent functions at N inputs.

    E[u_q(x_n) | v] = values[q][:, n]·v_q, and `open` is the variance that v leaves.
    """

    values: tuple[Float[np.ndarray, "_ N"], ...]
    open: Float[np.ndarray, "Q N"]


class Features(NamedTuple):
    """The latent parameters of all rows as linear maps of v, plus what v leaves open.

    f = offset + design·v + residual. v has the whitened inducing values of each latent function
    and, last, the whitened weights β of all channels' mean functions.
    """

    design: Float[np.ndarray, "R S"]
    slack: tuple[Float[np.ndarray, "_n _J _J"], ...]  # the residual's covariance, per run
    offset: Float[np.ndarray, " R"]


@dataclasses.dataclass(frozen=True, eq=False)
class Mixed:
    """A batch whose rows mix latent functions by the weights of their channels.

    Attributes:
        batch: The rows.
        weights: The weights of each row's latent parameters, (n, J, Q) per run.
        offset: The offset of each latent parameter.
        basis: The columns of the mean functions in the design: see `basis_design`.
    """

    batch: Batch
    weights: tuple[Float[np.ndarray, "_n _J Q"], ...]
    offset: Float[np.ndarray, " R"]
    basis: Float[np.ndarray, "R K"]

    @classmethod
    def of(
        cls,
        model: MultiTaskGP,
        batch: Batch,
        basis: Float[np.ndarray, "R K"] | None = None,
    ) -> "Mixed":
        """The batch under a plain model. `basis` saves computing those columns again."""
        weights = []
        for run in batch.runs:
            channels = batch.channel[run.rows]
            table = np.zeros((len(model.channels), run.latents, sum(model.draws)))
            for d in np.unique(channels) if len(channels) > 1 else channels:
                table[d] = model.channels[d].loadings
            weights.append(table[channels])
        basis = basis_design(model, batch) if basis is None else basis
        return cls(batch, tuple(weights), offsets(model, batch), basis)

    def features(self, projection: Projection) -> Features:
        """The rows' latent parameters as linear maps of v."""
        parts = [self._design(q, values) for q, values in enumerate(projection.values)]
        design = np.concatenate([*parts, self.basis], axis=1)
        return Features(design, self.slack(projection.open), self.offset)

    def slack(self, left: Float[np.ndarray, "Q N"]) -> tuple[Float[np.ndarray, "_n _J _J"], ...]:
        """The covariance of each row's latent parameters that comes from open variances."""
        found = []
        for run, w in zip(self.batch.runs, self.weights, strict=True):
            found.append((w * left.T[run.rows, None, :]) @ np.swapaxes(w, 1, 2))
        return tuple(found)

    def _design(self, q: int, values: Float[np.ndarray, "M N"]) -> Float[np.ndarray, "R M"]:
        """w_jq · values: the part of one latent function in the design."""
        rows = values.T
        if len(self.batch.runs) == 1 and self.batch.runs[0].latents == 1:
            return rows * self.weights[0][:, 0, q, None]
        design = np.empty((self.batch.flat_size, rows.shape[1]))
        for run, w in zip(self.batch.runs, self.weights, strict=True):
            part = w[:, :, q, None] * rows[run.rows, None, :]
            design[run.flat] = part.reshape(len(part) * run.latents, rows.shape[1])
        return design

    def adjoint(
        self,
        projection: Projection,
        by_design: Float[np.ndarray, "R S"],
        by_slack: tuple[Float[np.ndarray, "_n _J _J"], ...],
    ) -> tuple[Projection, tuple[Float[np.ndarray, "_J Q"], ...]]:
        """Derivatives by the projection and by the loadings of every channel in the batch.

        Returns:
            Derivatives by `values` and `open`, and one array per group of the batch by its
            channel's loadings.
        """
        sizes = [len(values) for values in projection.values]
        by_values, by_open = [], np.empty_like(projection.open)
        by_rows = [np.empty(w.shape) for w in self.weights]  # by each row's own weights
        *parts, _ = np.split(by_design, np.cumsum(sizes), axis=1)
        for q, (values, own) in enumerate(zip(projection.values, parts, strict=True)):
            found = np.empty((self.batch.size, sizes[q]))
            for run, w, by_w in zip(self.batch.runs, self.weights, by_rows, strict=True):
                part = own[run.flat].reshape(len(w), run.latents, sizes[q])
                found[run.rows] = np.einsum("nj,njm->nm", w[:, :, q], part)
                by_w[:, :, q] = np.einsum("njm,mn->nj", part, values[:, run.rows])
            by_values.append(found.T)
        for run, w, by_w, by_s in zip(
            self.batch.runs, self.weights, by_rows, by_slack, strict=True
        ):
            bent = by_s @ w  # n J Q
            by_open[:, run.rows] = np.einsum("njq,njq->qn", w, bent)
            by_w += 2 * bent * projection.open.T[run.rows, None, :]
        return Projection(tuple(by_values), by_open), self._by_group(by_rows)

    def _by_group(
        self, by_rows: list[Float[np.ndarray, "_n _J Q"]]
    ) -> tuple[Float[np.ndarray, "_J Q"], ...]:
        """Rows' derivatives summed for each channel."""
        return tuple(by_rows[group.run][group.within].sum(axis=0) for group in self.batch.groups)


def offsets(model: MultiTaskGP, batch: Batch) -> Float[np.ndarray, " R"]:
    """The offset of each latent parameter of a batch's rows."""
    found = np.empty(batch.flat_size)
    for group in batch.groups:
        own = found[group.flat].reshape(-1, group.latents)
        own[:] = model.channels[group.channel].offset
    return found


def without_design(model: MultiTaskGP, batch: Batch) -> Features:
    """The offsets of rows whose latent parameters are known by other means than a design."""
    shapes = [(run.rows.stop - run.rows.start, run.latents) for run in batch.runs]
    slack = tuple(np.zeros((n, j, j)) for n, j in shapes)
    return Features(np.zeros((batch.flat_size, 0)), slack, offsets(model, batch))


def basis_design(
    model: MultiTaskGP,
    batch: Batch,
    values: Float[np.ndarray, "N B"] | None = None,
    spreads: Float[np.ndarray, "O B"] | None = None,
) -> Float[np.ndarray, "R K"]:
    """The mean functions as columns of the design, scaled by the prior spreads of their weights.

    There are K = O·B columns: every latent parameter of every channel has weights of its own.
    `values` (`model.basis(batch)`) and `spreads` (`model.basis_spreads()`) may be known already.
    """
    values = model.basis(batch) if values is None else values
    spreads = model.basis_spreads() if spreads is None else spreads
    outputs, count = model.outputs, spreads.shape[1]
    found = np.zeros((batch.flat_size, spreads.size))
    if not count:
        return found
    for group in batch.groups:
        first, j = outputs.first[group.channel], np.arange(group.latents)
        begin = group.flat.start + j
        for output, row in zip(first + j, begin, strict=True):
            columns = slice(output * count, (output + 1) * count)
            rows = slice(row, group.flat.stop, group.latents)
            found[rows, columns] = values[group.rows] * spreads[output]
    return found


def latent_precision(model: MultiTaskGP, batch: Batch) -> Float[np.ndarray, "Q N"]:
    """How precisely each row observes each latent function, judged at the channels' offsets.

    Exact for Gaussian channels, where it is w²/noise²; the right order for the others.
    """
    found = np.zeros((sum(model.draws), batch.size))
    for group in batch.groups:
        if not group.is_observed:
            continue
        channel = model.channels[group.channel]
        count, j = len(group.y), group.latents
        offset = np.broadcast_to(channel.offset, (count, j))
        _, precision = channel.likelihood.curvature(group.y, offset, np.zeros((count, j, j)))
        w = channel.loadings
        found[:, group.rows] = np.einsum("jq,njk,kq->qn", w, precision, w)
    return found


def open_covariance(
    model: MultiTaskGP, channels: Sequence[int], left: Float[np.ndarray, "Q N N"]
) -> Float[np.ndarray, "R R"]:
    """The covariance that v leaves open between channels at the same N inputs.

    Args:
        model: Plain.
        channels: The channels, one after the other.
        left: The covariance of each latent function that v leaves open.

    Returns:
        Σ_q w_q(r)·left_q·w_q(s) of R numbers: channel after channel, input after input, latent
        parameter after latent parameter.
    """
    count, loadings = left.shape[1], [model.channels[d].loadings for d in channels]
    weights = np.concatenate([np.tile(w, (count, 1)) for w in loadings])  # R Q
    place = np.concatenate([np.repeat(np.arange(count), len(w)) for w in loadings])
    total = np.zeros((len(place), len(place)))
    for q, own in enumerate(left):
        total += np.outer(weights[:, q], weights[:, q]) * own[np.ix_(place, place)]
    return total
