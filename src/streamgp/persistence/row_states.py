"""Does a state of kept rows fit its own model?"""

import itertools
from collections.abc import Container, Sequence

import numpy as np

from streamgp.data.axes import Axis
from streamgp.inference.dense.state import DenseState
from streamgp.inference.kept import Kept, adds_up
from streamgp.inference.over_time.state import RowState
from streamgp.model.multitask import MultiTaskGP
from streamgp.persistence.requirements import require

Trusted = Container[Kept]  # blocks whose numbers were checked before; none ever changes


def check_rows(
    state: RowState | DenseState, axes: Sequence[Axis], trusted: Trusted = frozenset()
) -> None:
    """Refuse rows that do not fit."""
    require(isinstance(state.blocks, tuple) and len(state.blocks) > 0, "blocks of rows")
    require(all(isinstance(block, Kept) for block in state.blocks), "blocks of rows")
    for block in state.blocks:
        if block not in trusted:
            _check_block(block, state.plain, len(axes))
    closed = state.closed
    require(type(closed) is int and 0 <= closed <= state.size, "a number of rows")
    new = tuple(block for block in state.blocks if block not in trusted)
    if isinstance(state, RowState):
        _check_filter(state, axes, new)
    else:
        require(all(_is_finite(block) for block in new), "finite numbers of rows")


def _check_filter(state: RowState, axes: Sequence[Axis], new: tuple[Kept, ...]) -> None:
    """Refuse rows over time that are out of order, or do not lead to the filter at their end."""
    require(len(axes) == 1, "one input column")
    kernels = state.plain.latent_kernels
    require(all(kernel.state_space() is not None for kernel in kernels), "Markov kernels")
    for block in new:
        require(bool(np.all(np.diff(block.time) >= 0)), "rows in the order of time")
    for one, other in itertools.pairwise(state.blocks):
        require(bool(one.time[-1] < other.time[0]), "blocks in the order of time")
    require((state.end is None) == (state.closed == 0), "the filter at its end")
    require(state.replace(blocks=new, closed=0, end=None).is_finite(), "finite numbers of rows")
    if state.end is not None:
        require(state.end.dtype == np.float64, "the filter at its end")
        require(bool(np.isfinite(state.end).all()), "finite numbers of the filter")
        state.states_at(state.blocks[-1].time[-1:])  # the core refuses one of another size


def _is_finite(block: Kept) -> bool:
    numbers = block.x, block.count, block.energy, block.linear, block.precision
    return all(np.isfinite(own).all() for own in numbers)


def _check_block(block: Kept, model: MultiTaskGP, columns: int) -> None:
    """Refuse a block whose columns are not those of rows of the model."""
    none = Kept.none(model, columns)
    for column, blank in zip(block.columns(), none.columns(), strict=True):
        require(column.dtype == blank.dtype, "numbers of rows")
        require(column.shape == (block.size, *blank.shape[1:]), "columns of one length")
    require(block.size > 0, "rows in every block")
    channels = len(model.channels)
    require(bool(np.all((block.channel >= 0) & (block.channel < channels))), "rows of channels")
    require(bool(np.all((block.count > 0) & (block.energy >= 0))), "counts of rows")
    sums = adds_up(model)
    for index in np.unique(block.channel):
        likelihood = model.channels[index].likelihood
        width = likelihood.observation_dim
        own = block.y[block.channel == index]
        if not sums[index]:  # rows that only their site tells of
            own = own[~np.isnan(own[:, 0])]
        values = own[:, 0] if width == 1 else own[:, :width]
        require(bool(likelihood.valid(values).all()), "values that their channel allows")
