"""Fleets: many models of one kind, by key."""

from streamgp.fleet.fleet import Fleet
from streamgp.fleet.report import FleetReport

__all__ = ["Fleet", "FleetReport"]
