"""tinygp: an exact GP, fitted again at every sample, with the kernel of the first batch.

Data are padded to a fixed size with rows of huge noise. Otherwise every sample would compile.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from tinygp import GaussianProcess, kernels

jax.config.update("jax_enable_x64", True)

_HUGE = 1e12


def _process(theta, x, known):
    variance, lengthscale, noise = jnp.exp(theta)
    kernel = variance * kernels.Matern32(lengthscale)
    return GaussianProcess(kernel, x, diag=jnp.where(known, noise, _HUGE))


@jax.jit
def _loss(theta, x, y, known):
    padding = -0.5 * jnp.sum(jnp.where(known, 0.0, jnp.log(2 * jnp.pi * _HUGE)))
    return padding - _process(theta, x, known).log_probability(y)


@jax.jit
def _predicted(theta, x, y, known, new):
    conditioned = _process(theta, x, known).condition(y, new).gp
    return conditioned.loc, conditioned.variance + jnp.exp(theta[2])


class Contender:
    def __init__(self, capacity):
        self.x, self.y = np.zeros(capacity), np.zeros(capacity)
        self.count, self.theta = 0, None

    def learn(self, x, y, channel):
        rows = slice(self.count, self.count + len(y))
        self.x[rows], self.y[rows] = x[:, 0], y
        self.count += len(y)
        if self.theta is None:
            start = np.log([np.var(y), 0.1 * np.ptp(x), 0.1 * np.var(y)])
            value = jax.value_and_grad(_loss)
            self.theta = minimize(lambda t: value(t, *self._data()), start, jac=True).x
        # The cost of a refit is paid at the next prediction, so predict once.
        jax.block_until_ready(_predicted(self.theta, *self._data(), x[:1, 0]))

    def _data(self):
        return self.x, self.y, np.arange(len(self.x)) < self.count

    def predict(self, x, channel):
        return map(np.asarray, _predicted(self.theta, *self._data(), x[:, 0]))
