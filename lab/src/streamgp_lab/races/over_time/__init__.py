"""Rows over time: what a model of one input costs and keeps, and what it still knows."""
