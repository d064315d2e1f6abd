"""Measuring streamgp beside its peers."""
