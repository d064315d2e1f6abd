"""One sample at a time: cost against a Kalman filter in NumPy, and whether it grows.

    python -m benchmarks.samples

Everything of a row is measured in one run; read the ratios.
"""

import resource
import time

import numpy as np

import streamgp as sgp

POINTS = sgp.Fixed(np.linspace(0, 60, 64))


def data(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 60, count)
    return x, np.sin(x) + 0.3 * generator.normal(size=count)


def model() -> sgp.ContinualGP:
    gp = sgp.ContinualGP(
        sgp.Gaussian(noise=0.3), latents=[sgp.Matern32(1.5, 1.0)], inducing=POINTS, learning=None
    )
    gp.update(*data(1000))
    return gp


def kalman_seconds(count: int) -> float:
    """A Matérn-3/2 GP in time as a state-space model, sample by sample."""
    x, y = data(count)
    x, rate, noise = np.sort(x), np.sqrt(3) / 1.5, 0.09
    stationary = np.diag([1.0, rate**2])
    mean, covariance = np.zeros(2), stationary.copy()
    begin = time.perf_counter()
    for step, value in zip(np.diff(x, prepend=x[0]), y, strict=True):
        decay = np.exp(-rate * step)
        a = decay * np.array([[1 + rate * step, step], [-(rate**2) * step, 1 - rate * step]])
        mean, covariance = a @ mean, a @ (covariance - stationary) @ a.T + stationary
        total = covariance[0, 0] + noise
        gain = covariance[:, 0] / total
        mean = mean + gain * (value - mean[0])
        covariance = covariance - np.outer(gain, covariance[0])
    return (time.perf_counter() - begin) / count


def many_seconds(gp: sgp.ContinualGP, count: int) -> float:
    x, y = data(count, seed=1)
    begin = time.perf_counter()
    gp.update_many(x, y)
    return (time.perf_counter() - begin) / count


def single_seconds(gp: sgp.ContinualGP, count: int) -> float:
    seconds = []
    for x, y in zip(*data(count, seed=2), strict=True):
        begin = time.perf_counter()
        gp.update(x, y)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    gp = model()
    many_seconds(gp, 2048)
    single_seconds(gp, 20)
    repeats = [(kalman_seconds(20_000), many_seconds(gp, 20_480)) for _ in range(5)]
    kalman, many = np.median(repeats, axis=0)
    print(f"update_many, M = 64: {many * 1e6:.1f} µs a sample, {1 / many:,.0f} a second")
    print(f"Kalman filter, NumPy: {kalman * 1e6:.1f} µs a sample: {kalman / many:.1f}×")
    print(f"single update, M = 64: {single_seconds(gp, 300) * 1e3:.2f} ms")
    print("\n| samples seen | µs a sample | peak memory, MB |\n|---|---|---|")
    gp = model()
    for target in (10**3, 10**4, 10**5, 10**6):
        missing = target - sum(gp.observations.values())
        if missing > 0:
            many_seconds(gp, missing)
        now = np.median([many_seconds(gp, 10_240) for _ in range(3)])
        print(f"| {target:,} | {now * 1e6:.1f} | {resident():.0f} |")


if __name__ == "__main__":
    main()
