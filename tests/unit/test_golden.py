"""The numbers of the JAX version that came before: the same in every family and structure.

It had no mean functions, scales were fixed, and a carried site was mixed once and for all. In that
setting the E step, the bound, its gradient, the site after a step and the memory of kernels and
likelihood parameters are the same. Weights and noises were remembered there and are read from the
past here, so what is remembered of them is left out.

Arrays are compared relative to their largest entry: the smallest entries of sites and memories are
differences of large ones. Nearly all agree to 1e-11. The curvature in a likelihood's own parameters
was exact there and is taken by differences here, which are right to eight digits.
"""

import dataclasses

import numpy as np
import pytest
from tests._reference import build, golden

from streamgp.inference import alternating, m_step
from streamgp.inference.e_step import exact_sites, first_sites
from streamgp.inference.trust import exaggeration
from streamgp.inference.sparse.episode import Episode, Options
from streamgp.parameters import free_vector, with_free

CURVED = 1e-7  # tolerance of curvatures that are differences

CASES = pytest.mark.parametrize("name", golden.NAMES)


@pytest.fixture(scope="module")
def read():
    """Each file is read once."""
    known = {}
    return lambda name: known.setdefault(name, golden.read(name))


@pytest.fixture
def as_patient(monkeypatch):
    """M steps end at the gains at which they ended there."""
    for module in (m_step, alternating):
        monkeypatch.setattr(module, "FLAT", 1e-5)


def assert_close(got, wanted, tolerance=1e-8):
    """Relative to the largest entry."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    scale = np.max(np.abs(wanted), initial=0.0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def assert_sites_close(got, wanted, tolerance):
    assert_close(got.linear, wanted.linear, tolerance)
    assert_close(got.precision, wanted.precision, tolerance)


def assert_memories_close(state, before, gradient, precision):
    """Of what is remembered still; of the rest, what was remembered before."""
    kept = build.in_memory(state.model)
    assert_close(state.memory.gradient[kept], gradient[kept])
    assert_close(state.memory.precision[kept][:, kept], precision[kept][:, kept], CURVED)
    same = before.memory.recentred(state.model, before.model)
    np.testing.assert_array_equal(state.memory.gradient[~kept], same.gradient[~kept])
    np.testing.assert_array_equal(state.memory.precision[~kept], same.precision[~kept])


def assert_energies_close(case, state, prefix):
    """Of a lone channel with normal noise: what the points leave open was part of it."""
    if golden.is_lone(state.model):
        got = state.past.energy[0] + np.sum(state.past.slack)
        assert got == pytest.approx(float(case.found[f"{prefix}_energy"]), rel=1e-8)


def episode_of(case):
    options = Options(case.learner.e_rounds, case.learner.e_tolerance)
    return Episode(case.state, case.state.model.batch(case.rows), options)


def test_every_family_is_there():
    """With one, two and three latent parameters, of one and two inputs."""
    cases = [golden.read(name) for name in golden.NAMES]
    models = [case.state.model for case in cases]
    families = {type(c.likelihood).__name__ for m in models for c in m.channels}
    assert len(families) == 13
    assert {c.likelihood.latents for m in models for c in m.channels} == {1, 2, 3}
    assert {case.rows.x.shape[1] for case in cases} == {1, 2}
    assert {type(k).__name__ for m in models for k in m.kernels} >= {"Sum", "Product", "Matern52"}
    assert any(2 in m.draws for m in models)


@CASES
def test_rows_begin_alike(read, name):
    case = read(name)
    setting = episode_of(case).trial(case.state.model).setting
    got = exact_sites(setting, first_sites(setting))
    wanted = exact_sites(setting, case.held("first"))
    assert_close(got.linear, wanted.linear)
    for parts in zip(got.precision, wanted.precision, strict=True):
        assert_close(*parts)


@CASES
def test_objective_and_gradient(read, name):
    """At hyperparameters off the state's, with the same sites held."""
    case = read(name)
    episode = episode_of(case)
    trial = episode.trial(with_free(case.state.model, case.found["theta"]))
    value, gradient = episode.objective(trial, case.held("row"))
    assert value == pytest.approx(float(case.found["objective"]), rel=1e-9)
    assert_close(gradient, case.found["gradient"])


@CASES
@pytest.mark.usefixtures("as_patient")
def test_a_step(read, name):
    case = read(name)
    found = case.found
    state, info = case.learner.step(case.state, case.rows)
    assert_close(info.log_predictive, found["step_scores"])
    assert info.e_rounds == found["step_e_rounds"]
    assert info.m_evaluations == found["step_m_evaluations"]
    assert state.count == found["step_count"]
    assert info.bound == pytest.approx(float(found["step_bound"]), rel=1e-8)
    assert_close(free_vector(state.model), found["step_theta"])
    remembered = (found[f"step_memory_{part}"] for part in ("gradient", "precision"))
    assert_memories_close(state, case.state, *remembered)
    assert_energies_close(case, state, "step")
    fitted = build.as_fitted(case.learner, case.state, case.rows)
    assert_sites_close(fitted.site, case.site("step_"), 1e-8)
    if not any(np.isfinite(exaggeration(state.model, d)) for d in range(len(state.model.channels))):
        assert_sites_close(state.site, case.site("step_"), 1e-8)
    learner = dataclasses.replace(case.learner, weight_uncertainty=False)
    for d in range(sum(name.startswith("mean_") for name in found)):
        mean, covariance = learner.predict(fitted, found["grid"], d)
        assert_close(mean, found[f"mean_{d}"])
        assert_close(covariance, found[f"covariance_{d}"])


@CASES
def test_row_by_row(read, name):
    """With kernels and weights fixed, so that rows are kept as they are."""
    case = read(name)
    found = case.found
    before, left = golden.with_fixed_kernels_and_weights(case.state)
    state, scores = case.learner.filter(before, case.rows)
    assert_close(scores, found["filter_scores"])
    assert_sites_close(state.site, case.site("filter_"), 1e-8)
    gradient, precision = (found[f"filter_memory_{part}"] for part in ("gradient", "precision"))
    assert_memories_close(state, before, gradient[left], precision[left][:, left])
    assert_energies_close(case, state, "filter")
    assert state.count == found["filter_count"]
