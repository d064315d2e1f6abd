"""States, batches and results of the JAX version of this library, read from files.

The files are made by a script that needs that version. A model is a JSON text in them; all else is
arrays.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

import streamgp as sgp
from streamgp import kernels
from streamgp.data.batch import Rows
from streamgp.inference.learner import Learner
from streamgp.inference.memory import Memory
from streamgp.inference.sites import RowSites, Site
from streamgp.inference.state import State
from streamgp.inference.vem import VEM
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.parameters import Frozen, Positive, Real, replaced

FOLDER = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))


class Golden(NamedTuple):
    """One case: what to begin with, and `found`, what the JAX version made of it."""

    learner: Learner
    state: State
    rows: Rows
    found: dict[str, np.ndarray]

    def site(self, prefix):
        return _site(self.found, prefix)

    def held(self, prefix):
        """The rows' sites, sorted as the library sorts rows."""
        batch = self.state.model.batch(self.rows)
        linear, precision = self.found[f"{prefix}_linear"], self.found[f"{prefix}_precision"]
        blocks = linear.shape[-1]
        parts, stacks = [], []
        for run in batch.runs:
            own, j = batch.order[run.rows], run.latents
            parts.append(linear[own][:, :j].reshape(-1, blocks))
            stacks.append(precision[own][:, :j, :j].copy())
        return RowSites(np.concatenate(parts), tuple(stacks))


def read(name):
    with np.load(FOLDER / f"{name}.npz") as file:
        found = dict(file)
    asked = json.loads(str(found["model"]))
    model = MultiTaskGP(
        tuple(map(_module, asked["kernels"])),
        tuple(_channel(part) for part in asked["channels"]),
        _module(asked["origin"]),
        tuple(asked["draws"]),
    )
    points = tuple(found[f"points_{q}"] for q in range(sum(model.draws)))
    memory = Memory(found["memory_gradient"], found["memory_precision"])
    counts = float(found["count"]), float(found["energy"])
    state = State(model, points, _site(found, ""), memory, *counts)
    learner = Learner(VEM(evaluations=asked["evaluations"]), factorised=asked["factorised"])
    rows = Rows(found["x"], found["y"][:, None], found["channel"])
    return Golden(learner, state, rows, found)


def _site(found, prefix):
    blocks = sum(name.startswith(f"{prefix}linear_") for name in found)
    return Site(
        tuple(found[f"{prefix}linear_{g}"] for g in range(blocks)),
        tuple(found[f"{prefix}precision_{g}"] for g in range(blocks)),
    )


def _channel(part):
    names = ("likelihood", "weights", "offset", "scale")
    return Channel(**{name: _module(part[name]) for name in names})


def _module(part):
    if isinstance(part, list):
        return tuple(map(_module, part))
    if not isinstance(part, dict):
        return part
    if "node" in part:
        return _node(part)
    fields = {name: _module(value) for name, value in part.items() if name != "kind"}
    return getattr(kernels if hasattr(kernels, part["kind"]) else sgp, part["kind"])(**fields)


def _node(part):
    if part["node"] == "Positive":
        logs = {name: np.asarray(part[name]) for name in ("log_value", "log_centre")}
        return replaced(Positive(1.0, spread=part["spread"]), **logs)
    if part["node"] == "Real":
        return Real(part["value"], part["spread"])
    return Frozen(np.asarray(part["value"], float))
