"""Fleets: many keys in one call beside a loop over models, and what new keys gain."""
