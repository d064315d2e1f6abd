"""Rows that meet inducing values, whose past is one site on all of them."""

from typing import NamedTuple

from streamgp.data.batch import Batch
from streamgp.inference.posterior import Marginals, Posterior, condition, marginals
from streamgp.inference.sites import RowSites, Site, aggregate
from streamgp.model.mixing import Features
from streamgp.model.multitask import MultiTaskGP


class SparseSetting(NamedTuple):
    """What a choice of hyperparameters implies for a batch, before its own sites."""

    model: MultiTaskGP
    batch: Batch
    features: Features
    carried: Site

    def site(self, rows: RowSites) -> Site:
        """What the past and these row sites say together."""
        return self.carried + aggregate(self.batch, rows, self.features)

    def resolved(self, rows: RowSites) -> RowSites:
        """The same: whitened inducing values are never known too well for I + Λ."""
        return rows

    def conditioned(self, rows: RowSites) -> tuple[Posterior, Marginals]:
        """q given the carried site and these row sites, and what it says at the rows."""
        posterior = condition(self.site(rows))
        return posterior, marginals(self.batch, posterior, self.features)
