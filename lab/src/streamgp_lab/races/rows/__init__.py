"""Rows over several inputs: what a model that keeps a bounded table of rows knows and costs."""
