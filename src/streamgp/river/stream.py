"""A model that works from the first sample on."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from streamgp.gp import ContinualGP

_ENOUGH = 32  # the number of samples to start from


class Stream:
    """A model of samples that come in order. It can predict after the first one.

    One sample does not tell the scales of the data. The first few samples are therefore kept, and
    the model is started again from all of them each time that their number has doubled.
    """

    def __init__(self) -> None:
        self.model: ContinualGP | None = None
        self._first: list[tuple[np.ndarray, float]] | None = []

    def learn(
        self,
        build: Callable[[], ContinualGP],
        x: Float[np.ndarray, "N P"],
        y: Float[np.ndarray, " N"],
    ) -> None:
        """Learn rows one after the other.

        Args:
            build: Makes a model without data.
            x: Inputs, one row per sample.
            y: Observations, one per sample.
        """
        done = 0
        while self._first is not None and done < len(y):
            self._start(build, self._first, x[done], float(y[done]))
            done += 1
        for n in range(done, len(y)):
            assert self.model is not None
            self.model.update(x[n : n + 1], y[n : n + 1])

    def _start(
        self,
        build: Callable[[], ContinualGP],
        first: list[tuple[np.ndarray, float]],
        x: Float[np.ndarray, " P"],
        y: float,
    ) -> None:
        rows = [*first, (x, y)]
        again = len(rows) & len(first) == 0  # a power of two
        model = build() if again or self.model is None else self.model
        taken = rows if again else rows[-1:]
        model.update(np.stack([row for row, _ in taken]), [value for _, value in taken])
        self.model, self._first = model, rows if len(rows) < _ENOUGH else None
