"""What an update costs, cold and warm, beside scikit-learn fitting those points alone.

    python -m benchmarks.updates

Times are of one run on one machine; read the ratios.
"""

import subprocess
import sys
import tempfile
import time

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import streamgp as sgp
from streamgp.experiments.sources import toys

_COLD = """
import sys, time
import numpy as np
begin = time.perf_counter()
import streamgp as sgp
if len(sys.argv) > 1:
    import jax
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
imported = time.perf_counter()
x = np.linspace(0, 1, 134)
sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(np.linspace(0, 1, 30))).update(x, np.sin(9 * x))
print(imported - begin, time.perf_counter() - imported)
"""


def warm(repeats: int = 30) -> None:
    """134 points at M = 30, all hyperparameters learned, again and again."""
    data = toys.one_channel(0)
    x, y = data.x[:134], data.y[:134]
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Fixed(np.linspace(x.min(), x.max(), 30)))
    model.update(x, y)
    seconds, evaluations = [], []
    for _ in range(repeats):
        report = model.update(x, y)
        seconds.append(report.seconds)
        evaluations.append(report.m_evaluations)
    refit = min(_sklearn_refit(x, y) for _ in range(3))
    median = float(np.median(seconds))
    print(
        f"warm update, 134 points, M = 30: median {median * 1e3:.1f} ms "
        f"({np.mean(evaluations):.0f} evaluations of the bound), "
        f"fastest {min(seconds) * 1e3:.1f} ms"
    )
    print(
        f"an exact GP refit on those 134 points alone: {refit * 1e3:.0f} ms, {refit / median:.0f}×"
    )


def _sklearn_refit(x: np.ndarray, y: np.ndarray) -> float:
    kernel = ConstantKernel(np.var(y)) * RBF(0.05) + WhiteKernel(1.0)
    begin = time.perf_counter()
    GaussianProcessRegressor(kernel, normalize_y=True).fit(x[:, None], y)
    return time.perf_counter() - begin


def cold() -> None:
    """The first update of a fresh process, without and with a filled compilation cache."""
    with tempfile.TemporaryDirectory() as cache:
        for label, arguments in (
            ("no cache", []),
            ("filling the cache", [cache]),
            ("second process", [cache]),
        ):
            out = subprocess.run(
                [sys.executable, "-c", _COLD, *arguments],
                capture_output=True,
                text=True,
                check=True,
            )
            imported, updated = map(float, out.stdout.split())
            print(f"{label}: import {imported:.1f} s, first update {updated:.1f} s")


if __name__ == "__main__":
    warm()
    cold()
