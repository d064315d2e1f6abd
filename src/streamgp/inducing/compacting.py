"""Compacting: what kept rows have said, as sites at inducing points that hold no observation."""

import numpy as np

from streamgp.data.batch import Rows
from streamgp.inducing.placement import Placer
from streamgp.inference.dense.state import DenseState
from streamgp.inference.e_step import exact_sites
from streamgp.inference.over_time.state import RowState
from streamgp.inference.sites import Site
from streamgp.inference.sparse.absorbed import absorbed
from streamgp.inference.sparse.setting import SparseSetting
from streamgp.inference.sparse.state import State
from streamgp.model.mixing import Mixed


def compacted(placer: Placer, state: RowState | DenseState) -> State:
    """A state at inducing points that knows what the rows of another have said.

    Args:
        placer: Chooses the points.
        state: With rows.
    """
    kept, model = state.kept, state.plain
    blank = placer.learner.begin(state.model, kept.x.shape[1])
    rows = Rows(kept.x, kept.y, kept.channel.astype(int))
    begun = placer.learner.init(state.model, placer.wanted(blank, rows, state.model, 1))
    batch = kept.batch(model)
    projection = begun.prior.project(batch.x)
    features = Mixed.of(model, batch).features(projection)
    width = features.design.shape[1]
    setting = SparseSetting(model, batch, features, Site(np.zeros(width), np.zeros((width, width))))
    sites = exact_sites(setting, kept.sites(batch))
    said = absorbed(setting, sites, projection)
    full = begun.replace(absorbed=said, heard=state.heard)
    return placer.pruned(blank, full, rows)
