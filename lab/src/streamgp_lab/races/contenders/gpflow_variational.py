"""GPflow: a sparse variational GP, trained on all data or on the new batch alone."""

import gpflow
import numpy as np
import tensorflow as tf


class Contender:
    """L-BFGS on the bound, with all parameters together.

    With `retrain` it keeps all data and starts from scratch at every batch. Otherwise it continues
    from its last parameters with the new batch alone. Its points are then spread over `span`, the
    range of all inputs.
    """

    def __init__(self, span, kind="real", points=30, retrain=True, iterations=1000):
        self.low, self.high = np.array(span, float).T
        self.kind, self.points, self.iterations = kind, points, iterations
        self.retrain, self.model, self.batches = retrain, None, []

    def learn(self, x, y, channel):
        batch = (x, y[:, None])
        if self.retrain:
            self.batches.append(batch)
            batch = tuple(np.concatenate(parts) for parts in zip(*self.batches, strict=True))
        if self.retrain or self.model is None:
            self.model = self._fresh(*batch)
        gpflow.optimizers.Scipy().minimize(
            self.model.training_loss_closure(batch),
            self.model.trainable_variables,
            options={"maxiter": self.iterations},
        )

    def _fresh(self, x, y):
        generator = np.random.default_rng(0)
        if self.retrain:
            z = x[generator.choice(len(x), min(self.points, len(x)), replace=False)]
        elif len(self.low) == 1:
            z = np.linspace(self.low, self.high, self.points)
        else:
            z = generator.uniform(self.low, self.high, (self.points, len(self.low)))
        lengthscales, scale = 0.1 * (self.high - self.low), np.var(y)
        if self.kind == "binary":
            kernel = gpflow.kernels.SquaredExponential(lengthscales=lengthscales)
            return gpflow.models.SVGP(kernel, gpflow.likelihoods.Bernoulli(), z)
        kernel = gpflow.kernels.SquaredExponential(scale, lengthscales)
        return gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1 * scale), z)

    def predict(self, x, channel):
        mean, variance = self.model.predict_y(tf.constant(x))
        return mean.numpy()[:, 0], variance.numpy()[:, 0]
