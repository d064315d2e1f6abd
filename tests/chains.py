"""Models that keep the past as a chain, with the same laws from the textbook beside them."""

import numpy as np

import streamgp as sgp
from streamgp import kernels
from tests._reference import markov
from tests._reference.markov import World

M12, M32, M52 = sgp.Matern12, sgp.Matern32, sgp.Matern52

# The library's kernel, and the same law from the textbook.
KERNELS = {
    "matern12": (M12(1.3, 0.7), markov.matern(0, 1.3, 0.7)),
    "matern32": (M32(1.3, 0.7), markov.matern(1, 1.3, 0.7)),
    "matern52": (M52(1.3, 0.7), markov.matern(2, 1.3, 0.7)),
    "sum": (
        M32(0.5, 0.4) + M52(4.0, 2.0), markov.matern(1, 0.5, 0.4) + markov.matern(2, 4.0, 2.0)
    ),
    "product": (
        M32(1.0, 0.9) * M52(2.0, 1.5), markov.matern(1, 1.0, 0.9) * markov.matern(2, 2.0, 1.5)
    ),
    "constant": (kernels.Constant(3.0), markov.constant(3.0)),
    "constant sum": (
        kernels.Constant(3.0) + M12(1.0, 1.0), markov.constant(3.0) + markov.matern(0, 1.0, 1.0)
    ),
    "linear": (sgp.Linear(2.0, 1.5), markov.line(2.0, 1.5)),
    "linear sum": (
        sgp.Linear(2.0, 1.5) + M32(1.0, 1.0), markov.line(2.0, 1.5) + markov.matern(1, 1.0, 1.0)
    ),
    "multiple": (2.5 * M32(0.8, 0.6), markov.constant(2.5) * markov.matern(1, 0.8, 0.6)),
    "periodic": (sgp.Periodic(1.0, 1.2, 3.0), markov.periodic(1.0, 1.2, 3.0)),
    "quasi-periodic": (
        sgp.Periodic(1.0, 1.2, 3.0) * M32(5.0, 1.0),
        markov.periodic(1.0, 1.2, 3.0) * markov.matern(1, 5.0, 1.0),
    ),
    "oscillator": (sgp.SHO(2.0, 3.0, 0.8), markov.oscillator(2.0, 3.0, 0.8)),
    "overdamped": (sgp.SHO(4.0, 0.3, 0.8), markov.oscillator(4.0, 0.3, 0.8)),
    "carma": (
        sgp.CARMA([4.0, 0.5, 0.7], [1.5], 0.9),  # (s² + s/2 + 4)(s + 0.7) and s + 1.5
        markov.driven([2.8, 4.35, 1.2], [1.5, 1.0], 0.9),
    ),
    "rough carma": (sgp.CARMA([4.0, 1.0], [0.5], 0.9), markov.driven([4.0, 1.0], [0.5, 1.0], 0.9)),
    "smooth": (sgp.RBF(1.3, 0.7).as_markov(6), markov.smooth(6, 1.3, 0.7)),
    "waves": (kernels.Cosine(3.0, 0.8), markov.wave(3.0, 0.8)),
    "damped waves": (
        kernels.Cosine(3.0, 0.8) * M12(4.0, 1.0), markov.wave(3.0, 0.8) * markov.matern(0, 4.0, 1.0)
    ),
}  # fmt: skip
NAMES = ("a", "b", "c")


def one(name, noise=0.3, offset=0.4, spread=2.0, origin=1.0):
    """A world with one channel."""
    numbers = (np.array([value]) for value in (offset, spread, noise))
    return World((KERNELS[name][1],), np.ones((1, 1)), *numbers, origin)


def two(first, second="matern52"):
    """A world with two channels that share two functions."""
    return World(
        (KERNELS[first][1], KERNELS[second][1]), np.array([[1.0, 0.4], [-0.6, 1.6]]),
        np.array([0.2, -1.0]), np.array([2.0, 1.0]), np.array([0.3, 0.5]), 1.0,
    )  # fmt: skip


def model_of(world, *names, order=None, **options):
    """The world as a model at fixed hyperparameters.

    Args:
        world: What the model is to be.
        names: Of the kernels of its functions.
        order: The order in which its channels are named.
        options: Others of `ContinualGP`.
    """
    channels = range(len(world.noises)) if order is None else order
    scale = {NAMES[d]: (world.offsets[d], 1.0) for d in channels}
    return sgp.ContinualGP(
        {NAMES[d]: sgp.Gaussian(noise=sgp.fixed(world.noises[d])) for d in channels},
        latents=[KERNELS[name][0] for name in names],
        mixing={NAMES[d]: sgp.fixed(world.weights[[d]]) for d in channels},
        mean={NAMES[d]: _level(world.spreads[d]) for d in channels},
        scale={**scale, "inputs": (world.origin, 1.0)},
        **{"learning": None, "engine": "chain", **options},
    )


def _level(spread):
    return sgp.Constant(float(spread)) if spread else None


def draw(world, x, seed=0):
    """Rows at some times, all channels in turn."""
    generator = np.random.default_rng(seed)
    channel = np.arange(len(x)) % len(world.noises)
    y = np.sin(2 * x + channel) + 0.3 * generator.normal(size=len(x)) + channel
    return markov.Rows(np.asarray(x, float), channel, y)


def batch_of(rows):
    """Rows as `update` takes them."""
    return {
        NAMES[d]: (rows.x[rows.channel == d], rows.y[rows.channel == d])
        for d in np.unique(rows.channel)
    }


def fed(model, *batches):
    """The sum of the bounds of some updates."""
    return sum(model.update(batch_of(rows), learn=False).bound for rows in batches)


def moments(model, x, channel):
    """Mean and variance of f at inputs of channels."""
    mean, variance = np.zeros((2, len(x)))
    for d in np.unique(channel):
        own = channel == d
        found = model.predict(x[own], NAMES[d])
        mean[own], variance[own] = found.latent_mean.ravel(), found.latent_variance.ravel()
    return mean, variance


def world_of(plain):
    """The world of a plain model of Gaussian channels and Matérn kernels."""
    orders = {M12: 0, M32: 1, M52: 2}
    channels = plain.channels
    return World(
        tuple(
            markov.matern(orders[type(k)], np.ravel(k.lengthscale)[0], np.ravel(k.variance)[0])
            for k in plain.latent_kernels
        ),
        np.concatenate([channel.loadings for channel in channels]),
        np.concatenate([channel.offset for channel in channels]),
        np.array([channel.spread.sum() for channel in channels]),
        np.array([float(channel.likelihood.noise) for channel in channels]),
        float(plain.origin[0]),
    )
