"""GPflow: a sparse variational GP, trained with natural gradients and Adam on mini-batches."""

import gpflow
import numpy as np
import tensorflow as tf


class Contender:
    """When the bound no longer rises, Adam's rate falls, until it is small.

    The bound is the mean over whole epochs of at least `window` steps, so that all rows count
    alike. `kind` is real or binary.
    """

    def __init__(
        self, kind="real", points=128, rows=512, steps=20_000, window=100, patience=5, rate=0.02,
        least=5e-4, flat=3e-4, gamma=0.1,
    ):  # fmt: skip
        self.kind, self.points, self.rows, self.steps = kind, points, rows, steps
        self.window, self.patience = window, patience
        self.rate, self.least, self.flat, self.gamma = rate, least, flat, gamma

    def _fresh(self, x, y, generator):
        z = x[generator.choice(len(x), min(self.points, len(x)), replace=False)]
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.sqrt(x.shape[1]) * x.std(0))
        likelihood = (
            gpflow.likelihoods.Gaussian(0.1 * y.var())
            if self.kind == "real"
            else gpflow.likelihoods.Bernoulli(tf.math.sigmoid)  # the link of streamgp
        )
        mean = gpflow.functions.Constant()
        return gpflow.models.SVGP(kernel, likelihood, z, mean_function=mean, num_data=len(x))

    def learn(self, x, y, channel):
        generator = np.random.default_rng(0)
        self.model = self._fresh(x, y, generator)
        gpflow.set_trainable(self.model.q_mu, False)
        gpflow.set_trainable(self.model.q_sqrt, False)
        natural = gpflow.optimizers.NaturalGradient(self.gamma)
        adam = tf.optimizers.Adam(self.rate)
        variational = [(self.model.q_mu, self.model.q_sqrt)]

        @tf.function
        def step(rows, values):
            def loss():
                return self.model.training_loss((rows, values))

            natural.minimize(loss, variational)
            variables = self.model.trainable_variables
            with tf.GradientTape() as tape:
                value = loss()
            adam.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
            return value

        best, waited, rate = np.inf, 0, self.rate
        parts = max(len(x) // self.rows, 1)
        epochs = -(-self.window // parts)
        for _ in range(0, self.steps, epochs * parts):
            losses = [
                step(tf.constant(x[part]), tf.constant(y[part, None])).numpy()
                for _ in range(epochs)
                for part in np.array_split(generator.permutation(len(x)), parts)
            ]
            now = np.mean(losses) / len(x)
            waited = 0 if now < best - self.flat else waited + 1
            best = min(best, now)
            if waited > self.patience:
                waited, rate = 0, 0.3 * rate
                adam.learning_rate.assign(rate)
            if rate < self.least:
                return

    def predict(self, x, channel):
        mean, variance = self.model.predict_y(tf.constant(x))
        return mean.numpy()[:, 0], variance.numpy()[:, 0]
