"""GPyTorch: a linear model of coregionalisation, trained from scratch on all data."""

import gpytorch
import torch

torch.set_default_dtype(torch.float64)


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, points, channels, latents):
        shape = torch.Size([latents])
        distribution = gpytorch.variational.CholeskyVariationalDistribution(
            points.shape[-2], batch_shape=shape
        )
        strategy = gpytorch.variational.LMCVariationalStrategy(
            gpytorch.variational.VariationalStrategy(
                self, points, distribution, learn_inducing_locations=True
            ),
            num_tasks=channels, num_latents=latents, latent_dim=-1,
        )  # fmt: skip
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ZeroMean(batch_shape=shape)
        self.covar_module = gpytorch.kernels.RBFKernel(batch_shape=shape)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Contender:
    """Channels may have different inputs, and each has its own noise."""

    def __init__(self, channels, latents, points=32, steps=600, rate=0.05, rows=256):
        self.channels, self.latents, self.points = channels, latents, points
        self.steps, self.rate, self.rows, self.batches = steps, rate, rows, []

    def learn(self, x, y, channel):
        self.batches.append([torch.as_tensor(part) for part in (x, y, channel)])
        x, y, channel = (torch.cat(parts) for parts in zip(*self.batches, strict=True))
        where = torch.linspace(0, 1, self.points)[None, :, None].repeat(self.latents, 1, 1)
        torch.manual_seed(0)
        self.model = Model(x.min() + where * (x.max() - x.min()), self.channels, self.latents)
        self.model.covar_module.lengthscale = 0.1 * (x.max() - x.min())
        self.noise = torch.nn.Parameter(torch.full((self.channels,), -1.0))
        optimiser = torch.optim.Adam([*self.model.parameters(), self.noise], lr=self.rate)
        self.model.train()
        for _ in range(self.steps):
            optimiser.zero_grad()
            part = torch.randperm(len(y))[: self.rows]
            loss = -self._bound(x[part], y[part], channel[part], len(y))
            loss.backward()
            optimiser.step()
        self.model.eval()

    def _bound(self, x, y, channel, count):
        """The evidence bound per observation, from some of the rows."""
        f = self.model(x, task_indices=channel)
        variance = torch.exp(self.noise)[channel]
        error = (y - f.mean) ** 2 + f.variance
        expected = -0.5 * (torch.log(2 * torch.pi * variance) + error / variance)
        return expected.mean() - self.model.variational_strategy.kl_divergence().sum() / count

    def predict(self, x, channel):
        with torch.no_grad():
            channel = torch.as_tensor(channel)
            f = self.model(torch.as_tensor(x), task_indices=channel)
            return f.mean.numpy(), (f.variance + torch.exp(self.noise)[channel]).numpy()
