"""GPyTorch: an exact GP, trained on the first batch and conditioned on every later sample."""

import gpytorch
import torch

torch.set_default_dtype(torch.float64)


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Contender:
    def __init__(self, steps=200, rate=0.1):
        self.steps, self.rate, self.model = steps, rate, None

    def learn(self, x, y, channel):
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        if self.model is None:
            self.model = self._trained(x, y)
        else:
            self.predict(x.numpy(), None)  # GPyTorch needs a prediction before it can condition
            with torch.no_grad():
                self.model = self.model.get_fantasy_model(x, y)

    def _trained(self, x, y):
        model = Model(x, y, gpytorch.likelihoods.GaussianLikelihood())
        model.covar_module.base_kernel.lengthscale = 0.1 * (x.max() - x.min())
        likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=self.rate)
        model.train()
        for _ in range(self.steps):
            optimiser.zero_grad()
            loss = -likelihood(model(x), y)
            loss.backward()
            optimiser.step()
        return model.eval()

    def predict(self, x, channel):
        with torch.no_grad():
            observed = self.model.likelihood(self.model(torch.as_tensor(x)))
            return observed.mean.numpy(), observed.variance.numpy()
