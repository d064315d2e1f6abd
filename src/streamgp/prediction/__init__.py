"""Predictions: what a model says of new observations."""
