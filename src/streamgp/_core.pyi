"""The compiled core of streamgp: linear states that scalar rows observe. Its sources are in core/.

Rows are columns of equal length, in the order of time: `t`, `y` (NaN where a row only asks),
`noise` variances, and `channel`, which readout a row has. A row sees (h, x) =
readouts[channel]·features, the features being those that `feature` names for each state (−1: one).
`gap` says which matrices of given blocks lead to each row. Arrays are contiguous and neither copied
nor converted.
"""

import numpy as np
import numpy.typing as npt

_Doubles = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.int32]

class Law:
    """How states move: independent blocks of moving numbers, and static numbers of unit variance.

    Kinds 0, 1 and 2 are Matérn-1/2, 3/2 and 5/2 of unit variance, of these rates. Kind 3 is a block
    of any size with the covariance `start` and the matrices `a` and `q` over each distinct gap.
    """

    def __init__(
        self,
        kinds: _Numbers,
        sizes: _Numbers,
        rates: _Doubles,
        fixed: int,
        start: _Doubles,
        a: _Doubles,
        q: _Doubles,
    ) -> None: ...

def evidence(
    law: Law,
    t: _Doubles,
    y: _Doubles,
    noise: _Doubles,
    channel: _Numbers,
    readouts: _Doubles,
    feature: _Numbers,
    features: _Doubles,
    gap: _Numbers | None = None,
) -> tuple[float, _Doubles, _Doubles, _Doubles, _Doubles, _Doubles, _Doubles, _Doubles]:
    """The log evidence and its exact gradient.

    It is by log rates, readouts, features and noises, and by `start`, `a` and `q` of given blocks.
    """

def log_evidence(
    law: Law,
    t: _Doubles,
    y: _Doubles,
    noise: _Doubles,
    channel: _Numbers,
    readouts: _Doubles,
    feature: _Numbers,
    features: _Doubles,
    gap: _Numbers | None = None,
) -> float:
    """The log evidence."""

def smooth(
    law: Law,
    t: _Doubles,
    y: _Doubles,
    noise: _Doubles,
    channel: _Numbers,
    readouts: _Doubles,
    feature: _Numbers,
    features: _Doubles,
    gap: _Numbers | None = None,
    before: _Doubles | None = None,
    after: _Doubles | None = None,
) -> tuple[float, _Doubles, _Doubles]:
    """The log evidence, and mean and variance of f at each row given all rows.

    `before` is what a filter knows (`Stream.state`) after rows that come before these, and `after`
    what later rows say, as `checkpoints` tells both.
    """

def states(
    law: Law,
    t: _Doubles,
    y: _Doubles,
    noise: _Doubles,
    channel: _Numbers,
    readouts: _Doubles,
    feature: _Numbers,
    features: _Doubles,
    gap: _Numbers | None = None,
    before: _Doubles | None = None,
    after: _Doubles | None = None,
) -> tuple[_Doubles, _Doubles]:
    """Mean and covariance of all numbers at each row that only asks, given all rows."""

def checkpoints(
    law: Law,
    t: _Doubles,
    y: _Doubles,
    noise: _Doubles,
    channel: _Numbers,
    readouts: _Doubles,
    feature: _Numbers,
    features: _Doubles,
    gap: _Numbers | None,
    stops: _Numbers,
) -> tuple[_Doubles, _Doubles]:
    """What the filter knows before some rows, and what these and all later ones say."""

def joint(
    law: Law,
    t: _Doubles,
    y: _Doubles,
    noise: _Doubles,
    channel: _Numbers,
    readouts: _Doubles,
    feature: _Numbers,
    features: _Doubles,
    gap: _Numbers | None = None,
    before: _Doubles | None = None,
    after: _Doubles | None = None,
) -> tuple[_Doubles, _Doubles]:
    """Mean and covariance of f at the rows that only ask, given all rows."""

class Stream:
    """A filter that rows are appended to."""

    def __init__(self, law: Law) -> None: ...
    def append(
        self,
        t: _Doubles,
        y: _Doubles,
        noise: _Doubles,
        channel: _Numbers,
        readouts: _Doubles,
        feature: _Numbers,
        features: _Doubles,
        gap: _Numbers | None = None,
    ) -> tuple[_Doubles, _Doubles, _Doubles]:
        """Learn rows. Mean and variance of f before each, and the log density of its value."""

    def ahead(
        self,
        t: _Doubles,
        y: _Doubles,
        noise: _Doubles,
        channel: _Numbers,
        readouts: _Doubles,
        feature: _Numbers,
        features: _Doubles,
        gap: _Numbers | None = None,
    ) -> tuple[_Doubles, _Doubles, _Doubles]:
        """Mean and variance of f at rows ahead, none of which is learned."""

    def state(self) -> _Doubles:
        """All that the filter knows, as one array."""

    def restore(self, state: _Doubles) -> None:
        """Take up such a state."""
