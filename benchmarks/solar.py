"""1 000 months of sunspots, one by one, beside exact GPs.

python -m benchmarks.solar
"""

import time

import numpy as np
from scipy.optimize import minimize

from streamgp.experiments import solar


class Exact:
    """An exact Matérn-3/2 GP by maximum likelihood."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.x, self.centre = x, y.mean()
        self.y = y - self.centre
        start = np.log([0.7, 1.0, 0.2])
        self.point = minimize(self.loss, start, method="Nelder-Mead", options={"maxfev": 120}).x

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        lengthscale, variance, _ = np.exp(self.point)
        r = np.sqrt(3) * np.abs(a[:, None] - b[None, :]) / lengthscale
        return variance * (1 + r) * np.exp(-r)

    def loss(self, point: np.ndarray) -> float:
        self.point = point
        chol = np.linalg.cholesky(
            self.gram(self.x, self.x) + np.exp(point[2]) * np.eye(len(self.x))
        )
        half = np.linalg.solve(chol, self.y)
        return 0.5 * half @ half + np.sum(np.log(np.diag(chol)))

    def prequential(self, x: np.ndarray, y: np.ndarray, first: int) -> float:
        """NLPD of each sample after `first` given all before it, hyperparameters as they are."""
        total = self.gram(x, x) + np.exp(self.point[2]) * np.eye(len(x))
        chol = np.linalg.cholesky(total)
        half = np.linalg.solve(chol, y - self.centre)
        scores = 0.5 * (half**2 + np.log(2 * np.pi)) + np.log(np.diag(chol))
        return float(np.mean(scores[first:]))

    def fitted(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance, noise included, at the months it was trained on."""
        k, noise = self.gram(self.x, self.x), np.exp(self.point[2])
        gain = np.linalg.solve(k + noise * np.eye(len(self.x)), k)
        return gain.T @ self.y, np.diag(k - k @ gain) + noise

    def nlpd(self, months: int) -> float:
        """Of the first so many months, all of them trained on."""
        mean, variance = self.fitted()
        scores = 0.5 * ((self.y - mean) ** 2 / variance + np.log(2 * np.pi * variance))
        return float(np.mean(scores[:months]))

    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.fitted()[0] - self.y) ** 2)))


def main() -> None:
    data = solar.load()
    begin = time.perf_counter()
    outcome = solar.run(data, solar.model(), progress=True)
    seconds = time.perf_counter() - begin
    x, y = data.x[: solar.WARM_UP + solar.STREAM], data.y[: solar.WARM_UP + solar.STREAM]
    warm, hindsight = Exact(x[: solar.WARM_UP], y[: solar.WARM_UP]), Exact(x, y)
    print(f"prequential NLPD: {-outcome.scores.mean():.4f}")
    print(f"  exact GP, warm-up hyperparameters: {warm.prequential(x, y, solar.WARM_UP):.4f}")
    print(f"  exact GP, hindsight: {hindsight.prequential(x, y, solar.WARM_UP):.4f}")
    print(
        f"warm-up NLPD: {outcome.warm_up_first:.4f} at first, {outcome.warm_up_now:.4f} at the end"
    )
    print(
        f"  exact GPs: {warm.nlpd(solar.WARM_UP):.4f} trained on them, "
        f"{hindsight.nlpd(solar.WARM_UP):.4f} trained on everything"
    )
    print(
        f"RMSE over everything: {outcome.rmse:.4f}; exact GP on everything: {hindsight.rmse():.4f}"
    )
    print(f"{outcome.model!r}; {seconds:.0f} s")


if __name__ == "__main__":
    main()
