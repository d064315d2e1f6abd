"""One file a comparison."""
