"""The experiments of the paper: one file per experiment, and how they are run and summarised."""
