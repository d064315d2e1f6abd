"""The experiments: one file each, and how they are run and summarised."""
