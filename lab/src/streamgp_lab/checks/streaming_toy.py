"""Variants of a model on the paper's streaming toy."""

import warnings
from collections.abc import Callable, Mapping

import numpy as np

import streamgp as sgp
from streamgp.errors import BudgetWarning
from streamgp_lab.experiments import streaming
from streamgp_lab.experiments.experiment import Entry, Options
from streamgp_lab.experiments.protocol import measured
from streamgp_lab.progress import bar
from streamgp_lab.reporting.tables import Table

Variants = Mapping[tuple[str, str], Callable[[], sgp.ContinualGP]]


def compare(name: str, heading: tuple[str, str], variants: Variants, seeds: int) -> None:
    """Print a table with one row per variant."""
    rows = []
    with warnings.catch_warnings(), bar(name, seeds * len(variants)) as line:
        warnings.simplefilter("ignore", BudgetWarning)  # these checks need small budgets
        for labels, make in variants.items():
            found = []
            for seed in range(seeds):
                line.show(f"{', '.join(labels)}, seed {seed}")
                found.append(_nlpds(make(), seed))
                line.advance()
            final, drift = np.array(found).T
            rows.append(
                [*labels, f"{final.mean():.4f}", f"{final.max():.4f}", f"{drift.mean():+.4f}"]
            )
    columns = [*heading, "NLPD per point", "worst seed", "first batch: at the end − when learned"]
    print(Table(f"{name}, seeds: {seeds}", columns, rows).markdown())


def _nlpds(model: sgp.ContinualGP, seed: int) -> tuple[float, float]:
    """NLPD of all held-out data, and of the first batch at the end minus when it was learned."""
    run = measured(Entry(lambda *_: model), streaming.problem(Options(seed)), seed)
    first, now = run.oldest("y")
    return run.final("y").nlpd, now - first
