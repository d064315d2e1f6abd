"""Models that outlive the program: a store keeps them by key in a database."""

from streamgp.store.change import Change
from streamgp.store.reading import Info, Life, Stored
from streamgp.store.store import Store

__all__ = ["Change", "Info", "Life", "Store", "Stored"]
