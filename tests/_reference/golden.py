"""States, batches and results of the JAX version of this library, read from files.

The files are made by a script that needs that version. A model is a JSON text in them; all else is
arrays. That version had no mean functions, and it kept one mixed site of all channels. It is read
as what a channel of its own said, which sees each latent function once and has unit noise. Of a
lone channel with normal noise it is the channel's own site. Beside it that version remembered an
expansion of past data in the hyperparameters, which here stands beside what is believed of them.
"""

import itertools
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

import streamgp as sgp
from streamgp import kernels
from streamgp.data.batch import Rows
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.sites import RowSites, Site
from streamgp.inference.sparse.absorbed import Absorbed
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.state import State
from streamgp.inference.vem import VEM
from streamgp.model.means import NONE
from streamgp.model.multitask import Channel, MultiTaskGP
from streamgp.parameters import Frozen, Positive, Real, fixed, free_size, free_vector, replaced
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
    learner = Learner(VEM(evaluations=asked["evaluations"]))
    rows = Rows(found["x"], found["y"][:, None], found["channel"])
    return Golden(learner, _state(learner, model, points, found), rows, found)


def _state(learner, model, points, found):
    site, count = _site(found, ""), float(found["count"])
    heard = _heard(model, found["memory_gradient"], count)
    if is_lone(model):
        blank = learner.init(model, points)
        energy = float(found["energy"])
        return blank.replace(heard=heard, absorbed=_unmixed(blank, site, count, energy))
    ones = build.channel(build.gaussian(1.0), np.ones((1, len(points))))
    blank = learner.init(replaced(model, channels=(*model.channels, ones)), points)
    return blank.replace(heard=np.append(heard, 0.0), absorbed=_mixed(blank, site))


def _mixed(blank, site):
    """What the last channel, of weights one and unit noise, has said if that is the site."""
    said = Absorbed.none(blank.plain, blank.sizes)
    said.linear[-1], said.precision[-1] = site.linear, site.precision
    return said


class Remembering(NamedTuple):
    """Beliefs, and beside them an expansion of past data in the hyperparameters, as there was.

    Attributes:
        beliefs: Of hyperparameters.
        anchor: Where the expansion is made.
        gradient: Of past data by hyperparameters.
        precision: Their curvature.
    """

    beliefs: Beliefs
    anchor: np.ndarray
    gradient: np.ndarray
    precision: np.ndarray

    def objective(self, theta, value, gradient):
        step = theta - self.anchor
        value, slope = value + self._remembered(step), self.gradient - self.precision @ step
        return self.beliefs.objective(theta, value, gradient + slope)

    def value(self, theta):
        return self.beliefs.value(theta) + self._remembered(theta - self.anchor)

    def _remembered(self, step):
        return float(self.gradient @ step - 0.5 * step @ self.precision @ step)


def remembering(case, beliefs):
    """The beliefs of a case, with what that version remembered of past data."""
    anchor = free_vector(case.state.model)
    memory = (case.found[f"memory_{part}"] for part in ("gradient", "precision"))
    return Remembering(beliefs, anchor, *memory)


def is_lone(model):
    """Whether a noise that scales the sites is all that there is to learn of the only channel."""
    first, *others = model.channels
    return not others and first.likelihood.scales_sites and free_size(first) == 1


def _heard(model, gradient, count):
    """The observations of each channel, equally many of each one that is remembered."""
    ends = free_size(model.kernels) + np.cumsum([0, *map(free_size, model.channels)])
    spoke = [gradient[a:b].any() for a, b in itertools.pairwise(ends)]
    parts = np.array(spoke, float) if any(spoke) else np.ones(len(model.channels))
    return count * parts / parts.sum()


def _unmixed(blank, site, count, energy):
    """What a lone channel of weight one has said: its site at unit noise.

    What the points leave open is part of the energy there.
    """
    [channel] = blank.plain.channels
    np.testing.assert_array_equal(channel.loadings, 1.0)
    unit, said = (
        site.scaled(1 / channel.likelihood.strength),
        Absorbed.none(blank.plain, blank.sizes),
    )
    said.linear[0], said.precision[0] = unit.linear, unit.precision
    said.count[0], said.energy[0] = count, energy
    return said


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
