"""GPyTorch: a sparse variational GP, trained with Adam on mini-batches of everything."""

import gpytorch
import numpy as np
import torch
from scipy.cluster.vq import kmeans2

torch.set_default_dtype(torch.float64)

CLUSTERED = 8000  # the largest number of rows that k-means sees


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        strategy = gpytorch.variational.VariationalStrategy(
            self, points, distribution, learn_inducing_locations=True
        )
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(ard_num_dims=points.shape[1])
        )
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Contender:
    """Points start at k-means. When the bound no longer rises, the rate falls, until it is small.

    The bound is the mean over whole epochs of at least `window` steps, so that all rows count
    alike.
    """

    def __init__(
        self, points=128, rows=512, steps=20_000, window=100, patience=5, rate=0.02, least=5e-4,
        flat=3e-4,
    ):  # fmt: skip
        self.points, self.rows, self.steps = points, rows, steps
        self.window, self.patience = window, patience
        self.rate, self.least, self.flat = rate, least, flat

    def learn(self, x, y, channel):
        torch.manual_seed(0)
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        self.model = self._fresh(x, y).train()
        bound = gpytorch.mlls.VariationalELBO(self.model.likelihood, self.model, len(y))
        optimiser = torch.optim.Adam(self.model.parameters(), lr=self.rate)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimiser, factor=0.3, patience=self.patience, threshold=self.flat, threshold_mode="abs"
        )
        parts = max(len(y) // self.rows, 1)
        epochs = -(-self.window // parts)
        for _ in range(0, self.steps, epochs * parts):
            losses = [
                self._step(x[part], y[part], bound, optimiser)
                for _ in range(epochs)
                for part in torch.randperm(len(y)).tensor_split(parts)
            ]
            schedule.step(np.mean(losses))
            if optimiser.param_groups[0]["lr"] < self.least:
                break
        self.model.eval()

    def _fresh(self, x, y):
        generator = np.random.default_rng(0)
        some = x[generator.choice(len(x), min(len(x), CLUSTERED), replace=False)].numpy()
        centres, _ = kmeans2(some, min(self.points, len(x)), minit="points", rng=generator)
        model = Model(torch.as_tensor(centres))
        model.covar_module.base_kernel.lengthscale = np.sqrt(x.shape[1]) * x.std(dim=0)
        model.covar_module.outputscale = y.var()
        model.likelihood.noise = 0.1 * y.var()
        return model

    def _step(self, x, y, bound, optimiser):
        optimiser.zero_grad()
        loss = -bound(self.model(x), y)
        loss.backward()
        optimiser.step()
        return float(loss)

    def predict(self, x, channel):
        with torch.no_grad():
            observed = self.model.likelihood(self.model(torch.as_tensor(x)))
            return observed.mean.numpy(), observed.variance.numpy()
