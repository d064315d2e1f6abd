"""Small models with known hyperparameters, for the functional core."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from streamgp.inference.conditioning import Inducing
from streamgp.inference.learner import Learner
from streamgp.kernels import RBF
from streamgp.likelihoods import Gaussian
from streamgp.model.multitask import Channel, Generative
from streamgp.parameters import Positive, Real, fixed


def as_arrays(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), tree)


def channel(likelihood, weights, offset=0.0, scale=1.0, trainable=False):
    weights = np.atleast_2d(weights)
    latents = len(weights)
    wrap = Real if trainable else fixed
    return Channel(
        likelihood, wrap(weights), fixed(np.full(latents, offset)), fixed(np.full(latents, scale))
    )


def model(channels, lengthscales=(1.0,), variances=None, width=1, trainable=False):
    wrap = Positive if trainable else fixed
    variances = [1.0] * len(lengthscales) if variances is None else variances
    kernels = tuple(
        RBF(wrap(lengthscale), wrap(variance))
        for lengthscale, variance in zip(lengthscales, variances, strict=True)
    )
    return as_arrays(
        Generative(kernels, tuple(channels), fixed(np.zeros(width)), (1,) * len(kernels))
    )


def gaussian(noise, trainable=False):
    return Gaussian(Positive(noise) if trainable else fixed(noise))


def one_gaussian(lengthscale=1.0, variance=1.0, noise=0.3, width=1):
    return model([channel(gaussian(noise), [[1.0]])], [lengthscale], [variance], width)


def inducing(*sets, slots=None):
    """Inducing points, one set a latent (1-D arrays are one column), padded to `slots`."""
    columns = [np.asarray(s, float).reshape(len(s), -1) for s in sets]
    slots = max(map(len, columns)) if slots is None else slots
    points = np.stack([np.pad(c, [(0, slots - len(c)), (0, 0)]) for c in columns])
    mask = np.stack([np.arange(slots) < len(c) for c in columns])
    return Inducing(jnp.asarray(points), jnp.asarray(mask))


step = eqx.filter_jit(Learner.step)
move = eqx.filter_jit(Learner.move)


def predict(learner, state, x, channel=0):
    """Mean (N, J) and covariance (N, J, J) of the latent parameters."""
    x = jnp.asarray(x)
    return _predict(learner, state, x, jnp.full(len(x), channel))


_predict = eqx.filter_jit(Learner.predict)
