"""Sites of rows that are learned apart from each other, many rows at a time.

The E step of one row alone: with t = f less its predicted mean, t ~ N(0, E) before the row, its
site exp(bᵀt − ½tᵀPt) is found by damped natural-gradient rounds as in `e_step`. Every row has its
own damping and ends by itself, but all of them are computed together.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from streamgp.inference.e_step import ROUNDING, SMALLEST_STEP
from streamgp.likelihoods import Likelihood
from streamgp.likelihoods.quadrature import root

Vectors = Float[np.ndarray, "n J"]
Matrices = Float[np.ndarray, "n J J"]


class Before(NamedTuple):
    """What is known of each row's f before it is learned: N(mean, explained + slack)."""

    mean: Vectors
    explained: Matrices
    slack: Matrices


class SingleFit(NamedTuple):
    """A site of each row about its predicted mean, and all that follows from it."""

    linear: Vectors
    precision: Matrices
    shift: Vectors  # of the mean of f
    spread: Matrices  # the covariance that is left, slack apart
    bound: Float[np.ndarray, " n"]


def single_fits(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    before: Before,
    *,
    rounds: int,
    tolerance: float,
) -> SingleFit:
    """The site of each row, and what is known after it."""
    half = root(before.explained)
    linear, precision = likelihood.first_site(y, before.mean, before.explained + before.slack)
    fit = _fit(likelihood, y, before, half, linear, precision)
    step, busy = np.ones(len(y)), np.ones(len(y), bool)
    for _ in range(rounds):
        slope, target = likelihood.curvature(y, before.mean + fit.shift, fit.spread + before.slack)
        wanted = slope + (target @ fit.shift[:, :, None])[:, :, 0]
        linear = fit.linear + step[:, None] * (wanted - fit.linear)
        precision = fit.precision + step[:, None, None] * (target - fit.precision)
        new = _fit(likelihood, y, before, half, linear, precision)
        accepted = busy & (new.bound >= fit.bound - ROUNDING * (1 + np.abs(new.bound)))
        small = np.abs(new.bound - fit.bound) < tolerance
        done = accepted & small & (step == 1.0)
        fit = _chosen(accepted, new, fit)
        step = np.where(accepted, np.minimum(4 * step, 1.0), step / 8)
        busy &= ~done & (step >= SMALLEST_STEP)
        if not busy.any():
            break
    return fit


def _chosen(which: Bool[np.ndarray, " n"], new: SingleFit, old: SingleFit) -> SingleFit:
    if which.all():
        return new
    pairs = zip(new, old, strict=True)
    return SingleFit(*(np.where(which.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))


def _fit(
    likelihood: Likelihood,
    y: Float[np.ndarray, "n ..."],
    before: Before,
    half: Matrices,
    linear: Vectors,
    precision: Matrices,
) -> SingleFit:
    """q(f) of each row under its site, and the bound."""
    if half.shape[1] == 1:
        shift, spread, evidence = _conditioned_on_numbers(before.explained, linear, precision)
    else:
        shift, spread, evidence = _conditioned(half, linear, precision)
    mean, covariance = before.mean + shift, spread + before.slack
    expected = likelihood.expected(y, mean, covariance).value
    second = spread + shift[:, :, None] * shift[:, None, :]
    said = np.sum(linear * shift, axis=1) - 0.5 * np.sum(precision * second, axis=(1, 2))
    return SingleFit(linear, precision, shift, spread, expected + evidence - said)


def _conditioned_on_numbers(
    explained: Matrices, linear: Vectors, precision: Matrices
) -> tuple[Vectors, Matrices, Float[np.ndarray, " n"]]:
    """Mean, covariance and evidence where J = 1."""
    total = 1 + precision * explained
    spread = explained / total
    shift = spread[:, :, 0] * linear
    evidence = 0.5 * (linear * shift)[:, 0] - 0.5 * np.log(total[:, 0, 0])
    return shift, spread, evidence


def _conditioned(
    half: Matrices, linear: Vectors, precision: Matrices
) -> tuple[Vectors, Matrices, Float[np.ndarray, " n"]]:
    """Mean, covariance and evidence with B = I + RᵀPR, RRᵀ = E."""
    turned = np.swapaxes(half, 1, 2)
    chol = np.linalg.cholesky(np.eye(half.shape[1]) + turned @ precision @ half)
    sides = np.concatenate([turned @ linear[:, :, None], turned], axis=2)
    solved = np.linalg.solve(chol, sides)
    c, reach = solved[:, :, 0], solved[:, :, 1:]
    shift = (np.swapaxes(reach, 1, 2) @ c[:, :, None])[:, :, 0]
    spread = np.swapaxes(reach, 1, 2) @ reach
    log_det = np.sum(np.log(np.diagonal(chol, axis1=1, axis2=2)), axis=1)
    return shift, spread, 0.5 * np.sum(c**2, axis=1) - log_det
