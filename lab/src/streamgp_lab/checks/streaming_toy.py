"""A model on the paper's streaming toy, and what is measured there."""

from typing import NamedTuple

import streamgp as sgp
from streamgp_lab.experiments import streaming
from streamgp_lab.experiments.problem import Entry, Options
from streamgp_lab.experiments.protocol import measured


class Outcome(NamedTuple):
    """Mean NLPD a test point: of everything, and of the first batch first and at the end."""

    final: float
    oldest_first: float
    oldest_now: float


def stream_through(model: sgp.ContinualGP, seed: int) -> Outcome:
    """Ten batches, one after the other."""
    run = measured(Entry(lambda *_: model), streaming.problem(Options(seed)), seed)
    return Outcome(run.final("y").nlpd, *run.oldest("y"))
