"""One absurd value in a sine: what it costs the rest."""

import numpy as np

import streamgp as sgp
from streamgp_lab.races.figures import Figures, nlpd, over_seeds, scaled
from streamgp_lab.races.rows.streams import learned

_MOST, _VALUE, _PLACES = 0.1, 1e12, 8
_ROWS, _ASKED, _END, _NOISE = 400, 500, 40.0, 0.1
_COST = "one value of 1e12, in the worst of eight places: nats above the stream without it"
BARS = over_seeds(_COST, worst=_MOST)[1:]


def measure(share: float, seed: int) -> Figures:
    """NLPD of fresh values of the same function, less what it would be."""
    rng = np.random.default_rng(seed)
    x, asked = np.linspace(0, _END, scaled(_ROWS, share)), rng.uniform(0, _END, _ASKED)
    y, new = (np.sin(at) + _NOISE * rng.normal(size=len(at)) for at in (x, asked))

    def score(values: np.ndarray) -> float:
        model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.RBF())
        learned(model, x, values)
        return nlpd(model, asked, new)

    places = (np.arange(_PLACES) * len(x)) // _PLACES
    scores = [score(np.where(np.arange(len(x)) == place, _VALUE, y)) for place in places]
    return {_COST: max(scores) - score(y)}
