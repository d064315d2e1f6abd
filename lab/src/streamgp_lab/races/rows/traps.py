"""Traps: streams that begin or go on otherwise than they were, beside the same model offline."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, nlpd, over_seeds, scaled
from streamgp_lab.races.rows.streams import BATCHES, Rows, learned, table

_STILL, _TABLES, _OTHERS = 0.1, 0.1, 0.3  # nats
_ROWS, _ASKED, _NOISE = 1000, 500, 0.1
_PER_INPUT = 400  # rows of a stream with a still sensor
_END = 20.0  # of the first input of such a stream, and of twice that over time alone
_GROWS = 400.0


class Trap(NamedTuple):
    """A stream.

    Attributes:
        about: What happens.
        most: Nats that it may cost.
        stream: Its rows, from a share of them and a seed.
        together: Rows of a batch; None stands for a twenty-fifth of them.
    """

    about: str
    most: float
    stream: Callable[[float, int], Rows]
    together: int | None = None

    @property
    def figure(self) -> str:
        """The name of what it costs."""
        return f"{self.about}: nats above offline"

    @property
    def offline(self) -> str:
        """The name of what there is to be had."""
        return f"{self.about}: NLPD offline"


def still(inputs: int, count: int) -> Callable[[float, int], Rows]:
    """A sensor over time, and perhaps other inputs, that shows almost nothing for some rows."""
    end = 2 * _END if inputs == 1 else _END

    def f(x: np.ndarray) -> np.ndarray:
        return np.sin(x[:, 0]) + 0.5 * np.sin(x[:, 0] / 6) + 0.5 * np.sin(x[:, 1:]).sum(axis=1)

    def stream(share: float, seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        rows = scaled(_PER_INPUT * (1 + inputs) // 2, share)
        x, x_new = (rng.normal(size=(size, inputs)) for size in (rows, _ASKED))
        quiet = min(count, rows // 2)
        x[:, 0], x_new[:, 0] = (
            np.linspace(0, end, rows),
            rng.uniform(end * quiet / rows, end, _ASKED),
        )
        y, y_new = (f(at) + _NOISE * rng.normal(size=len(at)) for at in (x, x_new))
        y[:quiet] = 1e-3 * rng.normal(size=quiet)
        return Rows(x, y, x_new, y_new)

    return stream


def ordered(name: str) -> Callable[[float, int], Rows]:
    """A table by its main input."""
    return lambda share, seed: table(name, share, seed).ordered


def growing(*, constant: bool) -> Callable[[float, int], Rows]:
    """Values whose amplitude grows along four inputs, which move with the stream.

    With `constant`, the last input is one number in the first batch.
    """

    def part(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.linspace(-1, 1, count)[:, None] + 0.5 * rng.normal(size=(count, 4))
        if constant:
            x[: count // BATCHES, -1] = 0.0
        f = np.sin(2 * x[:, 1]) + np.cos(x[:, 2] + x[:, 3])
        amplitude = _GROWS ** (0.5 + 0.5 * x.mean(axis=1))
        return x, amplitude * f + _NOISE * rng.normal(size=count)

    def stream(share: float, seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        return Rows(*part(rng, scaled(_ROWS, share)), *part(rng, _ASKED))

    return stream


def noiseless(share: float, seed: int) -> Rows:
    """A function of three inputs, by the first of them."""
    rng = np.random.default_rng(seed)
    x, x_new = (rng.uniform(-1, 1, (count, 3)) for count in (scaled(_ROWS, share), _ASKED))
    x = x[np.argsort(x[:, 0])]
    y, y_new = (
        np.sin(3 * at[:, 0]) + np.cos(2 * at[:, 1] * at[:, 2]) + 0.5 * at[:, 2] for at in (x, x_new)
    )
    return Rows(x, y, x_new, y_new)


TRAPS = (
    *(
        Trap(f"{inputs} inputs, still for {batches} × {rows} rows", _STILL,
             still(inputs, batches * rows), rows)
        for inputs in (1, 2, 4) for batches in (1, 3) for rows in (10, 40)
    ),
    *(
        Trap(f"{name}, ordered", _TABLES, ordered(name))
        for name in ("powerplant", "airfoil", "yacht", "concrete", "wizmir", "treasury")
    ),
    Trap("growing 400-fold", _OTHERS, growing(constant=False)),
    Trap("growing, a column constant at first", _OTHERS, growing(constant=True)),
    Trap("noiseless, ordered", _OTHERS, noiseless),
)  # fmt: skip
BARS = tuple(
    bar
    for trap in TRAPS
    for bar in (over_seeds(trap.figure, worst=trap.most)[1], over_seeds(trap.offline)[0])
)


def measure(share: float, seed: int) -> Figures:
    """How much worse than offline each stream ends, and how good that is."""
    found: Figures = {}
    for trap in TRAPS:
        streamed, offline = scores(trap.stream(share, seed), trap.together)
        found[trap.figure], found[trap.offline] = streamed - offline, offline
    return found


def scores(rows: Rows, together: int | None = None) -> tuple[float, float]:
    """NLPDs of held-out rows, of a model that learns batches and one that learns all at once."""
    batches = -(-len(rows.y) // together) if together else BATCHES
    streamed, offline = (sgp.ContinualGP(sgp.Gaussian(), latents=sgp.RBF()) for _ in range(2))
    learned(streamed, rows.x, rows.y, batches=batches)
    offline.update(rows.x, rows.y)
    offline.refine()
    return nlpd(streamed, rows.x_new, rows.y_new), nlpd(offline, rows.x_new, rows.y_new)
