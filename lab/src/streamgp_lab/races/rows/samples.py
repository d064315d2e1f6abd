"""Single rows over two inputs, one `update` each."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, cpu_seconds, over_seeds, scaled
from streamgp_lab.races.rows.streams import Waves

_LONGEST, _ALL = "single rows: the longest update, CPU ms", "single rows: all updates, CPU s"
_USUAL = "single rows: the median update, CPU ms"
BARS = (
    over_seeds(_LONGEST, worst=70)[1],
    over_seeds(_ALL, mean=5)[0],
    over_seeds(_USUAL)[0],
)
_ROWS, _NOISE, _WIDE, _LENGTHSCALE = 4000, 0.3, 6.0, 1.5


def measure(share: float, seed: int) -> Figures:
    """CPU time of updates with learning."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, _WIDE, (scaled(_ROWS, share), 2))
    y = Waves(rng, 2, _LENGTHSCALE)(x) + _NOISE * rng.normal(size=len(x))
    model = sgp.ContinualGP(sgp.Gaussian())
    seconds = [
        cpu_seconds(lambda k=k: model.update(x[k : k + 1], y[k : k + 1])) for k in range(len(x))
    ]
    return {
        _LONGEST: 1e3 * max(seconds),
        _ALL: sum(seconds),
        _USUAL: 1e3 * float(np.median(seconds)),
    }
