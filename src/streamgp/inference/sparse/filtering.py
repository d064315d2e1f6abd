"""One observation at a time: low-rank updates of q(v), a block of rows at a time.

At fixed inducing points and hyperparameters an observation moves q(v) along one direction per
latent parameter. The recursion only serves that order. The state that the rows leave behind is the
sum of their sites, as if they had come together, so no error of the recursion is carried on.
"""

from typing import NamedTuple

import numpy as np

from streamgp.data.batch import Rows
from streamgp.inference.in_order import Block, InOrder
from streamgp.inference.posterior import Marginals
from streamgp.inference.sites import RowSites
from streamgp.inference.sparse.absorbed import reach
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.inference.sparse.state import State
from streamgp.model.mixing import Mixed, Projection
from streamgp.numerics.linalg import solve_lower


class Filtered(NamedTuple):
    """What became of each row of a batch, taken in order.

    Attributes:
        setting: The hyperparameters, the rows and their features.
        rows: The site of each row.
        before: q(f) of each row before it was learned.
        after: q(f) of each row right after.
        projection: What v says of the latent functions at each row.
    """

    setting: SparseSetting
    rows: RowSites
    before: Marginals
    after: Marginals
    projection: Projection


def filter_rows(state: State, rows: Rows, *, rounds: int, tolerance: float) -> Filtered:
    """Fold the rows in one after the other.

    Args:
        state: What is known before.
        rows: In their order.
        rounds: The largest number of rounds for the site of a row.
        tolerance: The gain of the bound below which rounds end.
    """
    model, batch = state.plain, state.model.batch(rows)
    projection = state.prior.project(batch.x)
    mixed = Mixed.of(model, batch)
    setting = SparseSetting(model, batch, mixed.features(projection), state.site)
    fold = InOrder(setting, rounds, tolerance, reach(state.model, model))
    mean, covariance = state.posterior.mean, state.posterior.covariance.copy()
    come = np.argsort(batch.order)  # the sorted place of each row, in the order they came
    for begin in range(0, batch.size, InOrder.block):
        block = Block.of(batch, come[begin : begin + InOrder.block])
        design = setting.features.design[block.order]
        moved = covariance @ design.T
        news = fold.learn(block, design @ mean, design @ moved)
        half = solve_lower(news.chol, news.root.T @ moved.T)
        mean = mean + news.innovation @ half
        covariance -= half.T @ half
    return Filtered(
        setting,
        fold.sites,
        fold.before.marginals(setting),
        fold.after.marginals(setting),
        projection,
    )
