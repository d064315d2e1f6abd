"""scikit-learn: an exact GP, fitted again at every sample, with the kernel of the first batch."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel


class Contender:
    def __init__(self):
        self.batches, self.kernel = [], None

    def learn(self, x, y, channel):
        self.batches.append((x, y))
        x, y = (np.concatenate(parts) for parts in zip(*self.batches, strict=True))
        if self.kernel is None:
            start = ConstantKernel(np.var(y)) * Matern(0.1 * np.ptp(x), (1e-3, 1e3), nu=1.5)
            self.model = GaussianProcessRegressor(start + WhiteKernel(0.1 * np.var(y))).fit(x, y)
            self.kernel = self.model.kernel_
        else:
            self.model = GaussianProcessRegressor(self.kernel, optimizer=None).fit(x, y)

    def predict(self, x, channel):
        mean, deviation = self.model.predict(x, return_std=True)
        return mean, deviation**2
