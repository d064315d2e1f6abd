"""Data: the paper's synthetic problems, and files that packages ship."""
