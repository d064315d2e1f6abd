"""GPyTorch: a variational GP whose training continues with the new batch alone."""

import gpytorch
import torch

torch.set_default_dtype(torch.float64)

LIKELIHOODS = {
    "real": gpytorch.likelihoods.GaussianLikelihood,
    "binary": gpytorch.likelihoods.BernoulliLikelihood,
}


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

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Contender:
    """`span` is the range of all inputs, where the initial inducing points are placed."""

    def __init__(self, span, kind="real", points=30, steps=300, rate=0.03):
        generator = torch.Generator().manual_seed(0)
        low, high = torch.tensor(span, dtype=torch.float64).T
        where = torch.rand(points, len(low), generator=generator, dtype=torch.float64)
        if len(low) == 1:
            where = torch.linspace(0, 1, points)[:, None]
        self.model = Model(low + where * (high - low))
        self.model.covar_module.base_kernel.lengthscale = 0.1 * (high - low)
        self.likelihood = LIKELIHOODS[kind]()
        self.kind, self.steps, self.begun = kind, steps, False
        parameters = [*self.model.parameters(), *self.likelihood.parameters()]
        self.optimiser = torch.optim.Adam(parameters, lr=rate)

    def learn(self, x, y, channel):
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        if self.kind == "real" and not self.begun:
            self.model.covar_module.outputscale = y.var()
            self.likelihood.noise = 0.1 * y.var()
        self.begun = True
        bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, len(y))
        self.model.train()
        for _ in range(self.steps):
            self.optimiser.zero_grad()
            loss = -bound(self.model(x), y)
            loss.backward()
            self.optimiser.step()
        self.model.eval()

    def predict(self, x, channel):
        with torch.no_grad():
            observed = self.likelihood(self.model(torch.as_tensor(x)))
            return observed.mean.numpy(), observed.variance.numpy()
