"""The parts of latent functions that are known by states at times."""

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float

from streamgp.inference.chain.elements import taken
from streamgp.inference.chain.known import Known
from streamgp.inference.chain.law import Law
from streamgp.inference.chain.places import places
from streamgp.inference.components import Parts
from streamgp.model.composition import Composition


def chain_parts(known: Known, x: Float[np.ndarray, "N P"], composition: Composition) -> Parts:
    """The parts of latent functions at inputs: each owns some numbers of the states.

    Given g = (1, β), the states around an input are N(mean·g, covariance), and parts of one
    function that are independent before any data leave nothing open together.
    """
    law = by_part(known.law, composition)
    found = places(known, x[:, 0], law)
    pairs = taken(known.pairs(found.number, found.which), found.of_row)
    weights = known.weights
    scaled = found.between.design * np.tile(law.scale, 2)
    design = scaled[:, None, :] * law.owns  # N p 2d
    by_g = design @ pairs.mean
    by_beta = by_g[:, :, 1:]
    across = by_beta @ weights.covariance
    covariance = design @ pairs.covariance @ np.swapaxes(design, 1, 2)
    covariance += across @ np.swapaxes(by_beta, 1, 2)
    diagonal = np.arange(law.latents)
    covariance[:, diagonal, diagonal] += found.between.open.T
    return Parts(by_g @ weights.first, covariance, across, weights.mean, weights.covariance)


def by_part(law: Law, composition: Composition) -> Law:
    """The law with every part of a kernel as a latent function of its own."""
    counts = [len(kernel.state_space() or ()) for kernel in composition.summands]
    owners = itertools.chain(*([p] * count for p, count in enumerate(counts)))
    return dataclasses.replace(law, latent=tuple(owners), latents=len(counts))
