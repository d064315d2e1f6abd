"""A real and a binary channel over two inputs, in batches and all at once."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, over_seeds, scaled
from streamgp_lab.races.rows.streams import Waves, learned_by_channel

_MOST = 0.03  # nats
_NAMES = ("real", "binary")
_ROWS, _ASKED, _BATCHES, _NOISE = 1200, 1000, 20, 0.3
_WIDE, _LENGTHSCALE = 6.0, 1.5
_REFINED = 5  # how often the model of all rows goes on learning
_CPU = "types: all updates, CPU s"


def _nats(name: str) -> str:
    return f"types, {name} channel: nats above all rows at once"


def _offline(name: str) -> str:
    return f"types, {name} channel: NLPD of all rows at once"


BARS = (
    tuple(
        bar
        for name in _NAMES
        for bar in (*over_seeds(_nats(name), _MOST), over_seeds(_offline(name))[0])
    )
    + over_seeds(_CPU)[:1]
)


def measure(share: float, seed: int) -> Figures:
    """NLPDs of either channel at fresh inputs. Both channels have a value in every row."""
    rng = np.random.default_rng(seed)
    shared, own = (Waves(rng, 2, _LENGTHSCALE) for _ in range(2))
    x, asked = (rng.uniform(0, _WIDE, (size, 2)) for size in (scaled(_ROWS, share), _ASKED))
    known, new = (_values(rng, shared(at), own(at)) for at in (x, asked))
    streamed, offline = (
        sgp.ContinualGP({"real": sgp.Gaussian(), "binary": sgp.Bernoulli()}) for _ in range(2)
    )
    found = {_CPU: sum(learned_by_channel(streamed, x, known, _BATCHES))}
    learned_by_channel(offline, x, known, 1)
    for _ in range(_REFINED):
        offline.refine()
    for name in _NAMES:
        ours, best = (
            -float(np.mean(model.predict(asked, name).log_density(new[name])))
            for model in (streamed, offline)
        )
        found[_nats(name)], found[_offline(name)] = ours - best, best
    return found


def _values(rng: np.random.Generator, shared: np.ndarray, own: np.ndarray) -> dict[str, np.ndarray]:
    chance = 1 / (1 + np.exp(-2 * shared - own))
    return {
        "real": shared + _NOISE * rng.normal(size=len(shared)),
        "binary": (rng.uniform(size=len(own)) < chance).astype(float),
    }
