"""One file per comparison."""
