"""Rows that meet what is known of their latent parameters, for E steps."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.data.batch import Batch
from streamgp.inference.dense.design import Design, Matrix
from streamgp.inference.e_step import exact_sites_at
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import NOTHING, RowSites, RunBlocks, inner, times
from streamgp.model.mixing import Features, offsets, without_design
from streamgp.model.multitask import MultiTaskGP
from streamgp.numerics.linalg import cholesky_of_identity_plus, solve_lower

_LEAST = 1e-6  # of what the prior knows of a latent parameter: rows are taken to say no less
_MOST = 1e13  # of what the prior knows: what a row says beyond it is lost in rounding


class Posterior(NamedTuple):
    """What rows and all before them say, as E steps ask."""

    log_evidence: float


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """Rows whose latent parameters less offsets are N(mean, covariance) before their own sites.

    Attributes:
        model: The hyperparameters, plain.
        batch: The rows.
        mean: Of the latent parameters, less their offsets.
        covariance: Of all of them together.
        explained: ℓ of each by the rows before, if these are a factor.
    """

    model: MultiTaskGP
    batch: Batch
    mean: Float[np.ndarray, " R"]
    covariance: Matrix
    explained: Matrix | None = None

    @functools.cached_property
    def features(self) -> Features:
        """The latent parameters before any data: nothing is left open beside the covariance."""
        return without_design(self.model, self.batch)

    def prior(self) -> Marginals:
        """q(f) of each row before the rows."""
        spread = tuple(
            self.covariance[flat[:, :, None], flat[:, None, :]] for flat in flats(self.batch)
        )
        spread = tuple(map(not_negative, spread))
        return Marginals(self.features.offset + self.mean, spread, self.mean, spread)

    def conditioned(self, rows: RowSites) -> tuple[Posterior, Marginals]:
        """q given the rows' sites, and what it says at the rows."""
        roots, value = scalars(self.batch, rows, self.limits)
        cross = times(self.batch, transposed(roots), self.covariance)  # Cov(Sᵀg, g)
        inside = times(self.batch, transposed(roots), np.ascontiguousarray(cross.T))
        chol = cholesky_of_identity_plus(inside)
        z = solve_lower(chol, value - times(self.batch, transposed(roots), self.mean))
        explained = solve_lower(chol, cross)
        mean = self.mean + explained.T @ z
        spread = left_of(self.batch, self.prior().covariance, explained)
        evidence = 0.5 * float(value @ value - z @ z) - float(np.sum(np.log(chol.diagonal())))
        at_rows = Marginals(self.features.offset + mean, spread, mean, spread)
        return Posterior(evidence), at_rows

    def resolved(self, rows: RowSites) -> RowSites:
        """Sites of at most the largest precisions, which ask for the same f."""
        linear, precision = rows.linear.copy(), []
        for run, own in zip(self.batch.runs, rows.precision, strict=True):
            _, most = self.limits[:, run.flat].reshape(2, -1, run.latents)
            too_much = np.max(np.diagonal(own, axis1=1, axis2=2) / most, axis=1, initial=1.0)
            precision.append(own / too_much[:, None, None])
            linear[run.flat] /= np.repeat(too_much, run.latents)
        return RowSites(linear, tuple(precision))

    def observed(self, rows: RowSites) -> tuple[Design, Float[np.ndarray, " R"], Matrix]:
        """The rows as scalar observations behind a factor, for `Factor.appended`."""
        assert self.explained is not None
        roots, value = scalars(self.batch, rows, self.limits)
        turned = transposed(roots)
        design = Design.of(self.model, self.batch).through(self.batch, turned)
        return design, value, times(self.batch, turned, np.ascontiguousarray(self.explained.T)).T

    @functools.cached_property
    def limits(self) -> Float[np.ndarray, "2 R"]:
        """The least and the largest precision of each latent parameter."""
        return limits_of(self.model, self.batch)


def limits_of(model: MultiTaskGP, batch: Batch) -> Float[np.ndarray, "2 R"]:
    """Precisions of each latent parameter that are as good as none, and as good as any.

    A site may pull without any curvature, but no scalar observation does.
    """
    diagonals = [kernel.diagonal(batch.x - model.origin) for kernel in model.latent_kernels]
    found = np.empty((2, batch.flat_size))
    for group in batch.groups:
        channel = model.channels[group.channel]
        known = np.stack(diagonals)[:, group.rows].T @ channel.loadings.T**2 + channel.scale**2
        least = np.where(channel.likelihood.conjugate, NOTHING, _LEAST / known)
        found[:, group.flat] = np.ravel(least), np.ravel(_MOST / known)
    return found


def scalars(
    batch: Batch, rows: RowSites, limits: Float[np.ndarray, "2 R"]
) -> tuple[RunBlocks, Float[np.ndarray, " R"]]:
    """S of each row's precision P = SSᵀ, a number for each direction of P, and S⁻¹b."""
    roots, value = [], np.empty(batch.flat_size)
    for run, precision in zip(batch.runs, rows.precision, strict=True):
        least, most = limits[:, run.flat].reshape(2, -1, run.latents)
        pull = rows.linear[run.flat].reshape(-1, run.latents)
        if run.latents == 1:
            strength, directions = precision[:, :, 0], np.ones(precision.shape)
        else:
            strength, directions = np.linalg.eigh(precision)
            pull = np.einsum("nj,njk->nk", pull, directions)
            # In a direction v, a latent parameter's variance counts by v².
            least, most = (
                1 / np.einsum("nj,njk->nk", 1 / own, directions**2) for own in (least, most)
            )
        strength = np.maximum(strength, least)
        root = np.sqrt(np.minimum(strength, most))
        value[run.flat] = np.ravel(pull / strength * root)
        roots.append(directions * root[:, None, :])
    return tuple(roots), value


def observed(
    model: MultiTaskGP, batch: Batch, held: RowSites
) -> tuple[Design, Float[np.ndarray, " R"]]:
    """Rows as scalar observations: by exact sites where they are conjugate, else by those held."""
    sites = exact_sites_at(model, batch, offsets(model, batch), held)
    roots, value = scalars(batch, sites, limits_of(model, batch))
    return Design.of(model, batch).through(batch, transposed(roots)), value


def left_of(batch: Batch, prior: RunBlocks, explained: Matrix) -> RunBlocks:
    """What is left of each row's covariance once ℓ has been explained."""
    told = inner(batch, explained.T, explained.T)
    return tuple(not_negative(p - e) for p, e in zip(prior, told, strict=True))


def transposed(blocks: RunBlocks) -> RunBlocks:
    return tuple(np.swapaxes(own, 1, 2) for own in blocks)


def flats(batch: Batch) -> list[np.ndarray]:
    """Where the latent parameters of each row are, (n, J) per run."""
    return [np.arange(run.flat.start, run.flat.stop).reshape(-1, run.latents) for run in batch.runs]


def not_negative(spread: Float[np.ndarray, "n J J"]) -> Float[np.ndarray, "n J J"]:
    """Covariances without variances that rounding has made negative."""
    diagonal = np.arange(spread.shape[1])
    spread[:, diagonal, diagonal] = np.maximum(spread[:, diagonal, diagonal], 0.0)
    return spread
