"""Data: the paper's synthetic problems, and files that come with installed packages."""
