"""Fleets: what the model of a new key begins as. The keys before it have a say in that."""

import copy
import dataclasses
from collections.abc import Hashable

import numpy as np

import streamgp as sgp
from streamgp.errors import StaleError
from streamgp.fleet.pool import Pool
from streamgp.fleet.population import Population
from streamgp.service import names
from streamgp.service.cache import Cache
from streamgp.store import Store

_KEY = "fleet"
_FEWEST = 8  # keys with enough observations, before anything is said of all
_ENOUGH = 20  # observations of each channel of such a key
_MOST = 40  # keys that are looked at, drawn at random
_GROWTH = 1.5  # of the observations of all keys, between two looks


@dataclasses.dataclass(frozen=True)
class Common:
    """What a fleet keeps beside its specification, in the bookkeeping of the model that has it.

    Attributes:
        is_pooled: Whether new keys start from what the others have learned.
        looked_at: How many observations all keys had when that was last found out.
        population: What was found; None while there is too little.
    """

    is_pooled: bool = True
    looked_at: int = 0
    population: Population | None = None

    @classmethod
    def of(cls, model: sgp.ContinualGP) -> "Common":
        """Read it out of the model that a fleet's keys begin as."""
        return cls(**model._bookkeeping.get(_KEY, {}))

    def put_into(self, model: sgp.ContinualGP) -> None:
        """Write it into a model, of which nobody else has a copy."""
        kept = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        model._bookkeeping = {**model._bookkeeping, _KEY: kept}


class Fleets:
    """The beginnings of models of fleets.

    Args:
        store: Where the fleets and their models are.
        cache: Models in memory.
    """

    def __init__(self, store: Store, cache: Cache):
        self._store, self._cache = store, cache

    def begun(self, fleet: str) -> sgp.ContinualGP:
        """A new model of a fleet.

        Args:
            fleet: The name of the fleet.

        Returns:
            A model without data. It is nobody else's.

        Raises:
            RefusedError: If there is no such fleet.
        """
        blank = self._cache.get(names.fleet_key(fleet)).model
        common = self._looked_again(fleet)
        updater, progress = blank._version
        if common.population is not None:
            asked = common.population.specification(updater.specification)
            updater = dataclasses.replace(updater, specification=asked)
        model = sgp.ContinualGP._begun(updater, progress)
        kept = {key: value for key, value in blank._bookkeeping.items() if key != _KEY}
        model._bookkeeping = kept
        return model

    def _looked_again(self, fleet: str) -> Common:
        """What the keys have in common, found out anew if there is much more to go by."""
        key = names.fleet_key(fleet)
        live = self._cache.get(key)
        common = Common.of(live.model)
        learning = live.model._version.updater.engines.settings.learning
        if not common.is_pooled or learning is None:
            return common
        infos = self._store.infos(names.members_of(fleet))
        total = sum(sum(info.observations.values()) for info in infos)
        able = [i.key for i in infos if min(i.observations.values(), default=0) >= _ENOUGH]
        if len(able) < _FEWEST or total < _GROWTH * common.looked_at:
            return common
        order = np.random.default_rng(total).permutation(len(able))[:_MOST]
        found = self._store.fetch_many([able[i] for i in order.tolist()])
        models: dict[Hashable, sgp.ContinualGP] = {k: s.model for k, s in found.items()}
        pool = Pool(learned=len(models)).seen(models)
        now = Common(True, total, pool.population or common.population)
        draft = copy.copy(live.model)
        now.put_into(draft)
        try:
            version = self._store.put(key, draft, version=live.version)
        except StaleError:  # another thread or process has done the same
            self._cache.forget(key)
        else:
            self._cache.publish(key, dataclasses.replace(live, model=draft, version=version))
        return now
