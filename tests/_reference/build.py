"""Small models with known hyperparameters, for the functional core."""

import numpy as np

from streamgp.data.batch import Rows
from streamgp.inference.sparse.episode import Episode, Options
from streamgp.kernels import RBF
from streamgp.likelihoods import Gaussian
from streamgp.model.means import NONE
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.parameters import Positive, Real, fixed


def channel(likelihood, weights, offset=0.0, scale=1.0, trainable=False, mean=NONE, spread=5.0):
    weights = np.atleast_2d(np.asarray(weights, float))
    latents = len(weights)
    wrap = Real if trainable else fixed
    return Channel(
        likelihood,
        wrap(weights),
        fixed(np.full(latents, offset)),
        fixed(np.full(latents, scale)),
        mean,
        fixed(np.full((latents, mean.size), spread)),
    )


def model(channels, lengthscales=(1.0,), variances=None, width=1, trainable=False):
    wrap = Positive if trainable else fixed
    variances = [1.0] * len(lengthscales) if variances is None else variances
    kernels = tuple(
        RBF(wrap(lengthscale), wrap(variance))
        for lengthscale, variance in zip(lengthscales, variances, strict=True)
    )
    return of_kernels(kernels, channels, width)


def of_kernels(kernels, channels, width=1, draws=None):
    draws = (1,) * len(kernels) if draws is None else draws
    return MultiTaskGP(tuple(kernels), tuple(channels), fixed(np.zeros(width)), draws)


def gaussian(noise, trainable=False):
    return Gaussian(Positive(noise) if trainable else fixed(noise))


def one_gaussian(lengthscale=1.0, variance=1.0, noise=0.3, width=1):
    return model([channel(gaussian(noise), [[1.0]])], [lengthscale], [variance], width)


def points(*sets):
    """Inducing points, one set per latent function; 1-D arrays are one column."""
    return tuple(map(_columns, sets))


def _columns(values):
    array = np.asarray(values, float)
    return array[:, None] if array.ndim == 1 else array


def rows(*parts):
    """Rows from (channel, inputs, observations), one part after the other."""
    x, y, channels = [], [], []
    for index, inputs, observations in parts:
        x.append(_columns(inputs))
        y.append(_columns(observations))
        channels.append(np.full(len(inputs), index))
    wide = max(part.shape[1] for part in y)
    padded = [np.pad(p, [(0, 0), (0, wide - p.shape[1])], constant_values=np.nan) for p in y]
    return Rows(np.concatenate(x), np.concatenate(padded), np.concatenate(channels))


def learned(learner, state, rows):
    """What a step comes to: hyperparameters, and the sites that rows have before they are kept."""
    options = Options(learner.e_rounds, learner.e_tolerance)
    episode = Episode(state, state.model.batch(rows), options)
    return episode.learn(episode.trial(state.model), learner.learning)


def slopes(function, point, step=1e-5):
    """The gradient by central differences of fourth order."""
    found = []
    for e in step * np.eye(len(point)):
        near, far = (function(point + k * e) - function(point - k * e) for k in (1, 2))
        found.append((8 * near - far) / (12 * step))
    return np.stack(found) if found else np.zeros(0)
