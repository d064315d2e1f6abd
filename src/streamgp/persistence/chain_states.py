"""Does a state that is kept as a chain fit its own model?"""

import itertools
from collections.abc import Container, Sequence

import numpy as np

from streamgp.data.axes import Axis
from streamgp.inference.chain.open_rows import OpenRows
from streamgp.inference.chain.segments import Segment
from streamgp.inference.chain.state import ChainState, Totals
from streamgp.model.multitask import MultiTaskGP
from streamgp.persistence.requirements import require

Trusted = Container[Segment]  # segments whose numbers were checked before; none ever changes


def check_chain(state: ChainState, axes: Sequence[Axis], trusted: Trusted = frozenset()) -> None:
    """Refuse a chain whose parts do not fit."""
    model = state.model
    require(len(axes) == 1, "one input column")
    kernels = state.plain.latent_kernels
    require(all(kernel.state_space() is not None for kernel in kernels), "Markov kernels")
    require(isinstance(state.segments, tuple) and len(state.segments) > 0, "segments of a chain")
    require(all(isinstance(s, Segment) for s in state.segments), "segments of a chain")
    features = 2 * state.mixing.law.size + model.basis_size
    blank = Segment.blank(
        np.arange(2.0), len(model.outputs.channel), len(model.outputs.left), features
    )
    shape = blank.linear.shape[1:], blank.precision.shape[1:]
    for segment in state.segments:
        found = segment.linear.shape[1:], segment.precision.shape[1:]
        require(found == shape, "sums of that size")
    new = [segment for segment in state.segments if segment not in trusted]
    for segment in new:
        require(segment.times.ndim == 1 and len(segment.times) > 1, "times of a chain")
        counts = {len(segment.times) - 1, len(segment.linear), len(segment.precision)}
        require(len(counts) == 1, "sums of every interval")
        require(bool(np.all(np.diff(segment.times) > 0)), "times in order")
    for one, other in itertools.pairwise(state.segments):
        require(one.times[-1] == other.times[0], "segments that follow one another")
    require(isinstance(state.totals, Totals), "totals of a chain")
    shapes = [array.shape for array in Totals.blank(model).arrays()]
    require([array.shape for array in state.totals.arrays()] == shapes, "totals of that size")
    if state.open is not None:
        _check_open(state.open, model)
    require(state.replace(segments=tuple(new)).is_finite(), "finite numbers in the state")


def _check_open(rows: OpenRows, model: MultiTaskGP) -> None:
    """Refuse open rows that are not rows of the model's channels with sites."""
    count, likelihoods = rows.size, [channel.likelihood for channel in model.channels]
    known = (rows.channel >= 0) & (rows.channel < len(likelihoods))
    require(rows.channel.dtype.kind == "i" and bool(known.all()), "open rows of channels")
    own = [likelihoods[d] for d in np.unique(rows.channel)]
    require(not any(likelihood.conjugate for likelihood in own), "open rows of such channels")
    latents, width = max(c.latents for c in own), max(c.observation_dim for c in own)
    require(rows.x.shape == (count, 1) and len(rows.y) == count, "inputs of open rows")
    require(rows.y.ndim == 2 and rows.y.shape[1] >= width, "values of open rows")
    require(rows.linear.shape == (count, latents), "sites of open rows")
    require(rows.precision.shape == (count, latents, latents), "sites of open rows")
