"""States, batches and results of the JAX version of this library, read from files.

The files are made by a script that needs that version. A model is a JSON text in them; all else is
arrays. That version had no mean functions, and it kept one mixed site of all channels. It is read
as what a channel of its own said, which sees each latent function once and has unit noise. Of a
lone channel with normal noise the sums per channel follow from it.
"""

import itertools
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

import streamgp as sgp
from streamgp import kernels
from streamgp.data.batch import Rows
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.memory import Memory
from streamgp.inference.past import Past
from streamgp.inference.sites import RowSites, Site
from streamgp.inference.sparse.state import State
from streamgp.inference.vem import VEM
from streamgp.model.means import NONE
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.parameters import Frozen, Positive, Real, fixed, free_size, replaced
from tests._reference import build

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
        parts, stacks = [], []
        for run in batch.runs:
            own, j = batch.order[run.rows], run.latents
            parts.append(linear[own][:, :j].ravel())
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
    learner = Learner(VEM(evaluations=asked["evaluations"], cells=0))
    rows = Rows(found["x"], found["y"][:, None], found["channel"])
    return Golden(learner, _state(learner, model, points, found), rows, found)


def _state(learner, model, points, found):
    memory = Memory(found["memory_gradient"], found["memory_precision"])
    count, site = float(found["count"]), _site(found, "")
    heard = _heard(model, memory, count)
    if is_lone(model):
        blank = learner.init(model, points)
        past = _unmixed(blank, site, count, float(found["energy"]))
        return blank.replace(memory=memory, heard=heard, past=past)
    ones = build.channel(build.gaussian(1.0), np.ones((1, len(points))))
    blank = learner.init(replaced(model, channels=(*model.channels, ones)), points)
    past = _mixed(blank, site)
    return blank.replace(memory=memory, heard=np.append(heard, 0.0), past=past)


def _mixed(blank, site):
    """The sums of which the last channel, of weights one and unit noise, has that site."""
    past, ends = blank.past.copy(), np.cumsum([0, *blank.sizes])
    pieces = list(itertools.starmap(slice, itertools.pairwise(ends)))
    for q, piece in enumerate(pieces):
        past.linear[q][-1] = site.linear[piece]
    for (q, r), own in zip(past.parts, past.precision, strict=True):
        if r < len(pieces):
            own[-1] = site.precision[pieces[q], pieces[r]]
    return past


def with_fixed_kernels_and_weights(state):
    """The state with these fixed, and which of its free parameters are left."""
    channels, left = [], [np.zeros(free_size(state.model.kernels), bool)]
    for channel, plain in zip(state.model.channels, state.plain.channels, strict=True):
        channels.append(replaced(channel, weights=fixed(plain.weights)))
        left.append(np.ones(free_size(channel.likelihood), bool))
        left.append(np.zeros(free_size(channel.weights), bool))
        left.append(np.ones(free_size(channel.scale), bool))
    left = np.concatenate(left)
    memory = Memory(state.memory.gradient[left], state.memory.precision[left][:, left])
    model = replaced(state.model, kernels=state.plain.kernels, channels=tuple(channels))
    return state.replace(model=model, memory=memory), left


def is_lone(model):
    """Whether a noise that scales the sites is all that there is to learn of the only channel."""
    first, *others = model.channels
    return not others and first.likelihood.scales_sites and free_size(first) == 1


def _heard(model, memory, count):
    """The observations of each channel, equally many of each one that is remembered."""
    ends = free_size(model.kernels) + np.cumsum([0, *map(free_size, model.channels)])
    spoke = [memory.gradient[a:b].any() for a, b in itertools.pairwise(ends)]
    parts = np.array(spoke, float) if any(spoke) else np.ones(len(model.channels))
    return count * parts / parts.sum()


def _unmixed(blank, site, count, energy):
    """The sums of a lone channel of weight one: its site at unit noise."""
    [channel] = blank.plain.channels
    np.testing.assert_array_equal(channel.loadings, 1.0)
    unit, (width,) = site.scaled(1 / channel.likelihood.strength), site.linear.shape
    return Past(
        (unit.linear[None], np.zeros((1, 0))),
        (unit.precision[None], np.zeros((1, width, 0)), np.zeros((1, 0, 0))),
        np.zeros((1, 1)),  # what the points leave open is part of the energy there
        np.array([count]),
        np.array([energy]),
    )


def _site(found, prefix):
    """A site of that version."""
    return Site(found[f"{prefix}linear_0"], found[f"{prefix}precision_0"])


def _channel(part):
    names = ("likelihood", "weights", "offset", "scale")
    given = {name: _module(part[name]) for name in names}
    return Channel(**given, mean=NONE, spread=fixed(np.zeros((len(part["scale"]["value"]), 0))))


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
