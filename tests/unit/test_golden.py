"""The numbers of the JAX version that came before: the same in every family and structure.

It had no mean functions, scales were fixed, and a carried site was mixed once and for all. In that
setting the E step, the bound, its gradient and the site after a step are the same. What that
version remembered of past data beside the site is added to what is believed of hyperparameters.

Arrays are compared relative to their largest entry: the smallest entries of sites are differences
of large ones. Nearly all agree to 1e-11.
"""

import dataclasses

import numpy as np
import pytest
from tests._reference import golden

from streamgp.inference import alternating, m_step
from streamgp.inference.e_step import exact_sites, first_sites
from streamgp.inference.sparse import absorbed, filtering
from streamgp.inference.sparse.episode import Episode, Options
from streamgp.parameters import free_vector, with_free

CASES = pytest.mark.parametrize("name", golden.NAMES)


@pytest.fixture(scope="module")
def read():
    """Each file is read once."""
    known = {}
    return lambda name: known.setdefault(name, golden.read(name))


@pytest.fixture
def as_patient(monkeypatch):
    """M steps end at the first gain at which they ended there."""
    for module in (m_step, alternating):
        monkeypatch.setattr(module, "FLAT", 1e-5)
    monkeypatch.setattr(m_step, "_QUIET", 1)


@pytest.fixture(autouse=True)
def as_they_were(monkeypatch):
    """That version read all sites under the weights of their time, and believed all of them."""
    whole = np.inf * np.ones(99)
    for module in (absorbed, filtering):
        monkeypatch.setattr(module, "reach", lambda wrapped, model: whole[: len(model.channels)])
    monkeypatch.setattr(Episode, "_slowed", lambda self, learned: None)
    reading = absorbed.Reading.of.__func__

    def held(cls, model, anchor):
        found = reading(cls, model, anchor)
        keeps = [not own.likelihood.scales_sites for own in model.channels]
        found.ratio[keeps], found.per_loading[keeps] = 1.0, 0.0
        return found

    monkeypatch.setattr(absorbed.Reading, "of", classmethod(held))


@pytest.fixture
def with_memory(monkeypatch):
    """M steps of a case have what that version remembered of past data."""
    beliefs = Episode._beliefs

    def remember(case):
        monkeypatch.setattr(
            Episode, "_beliefs", lambda *known: golden.remembering(case, beliefs(*known))
        )

    return remember


def assert_close(got, wanted, tolerance=1e-8):
    """Relative to the largest entry."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    scale = np.max(np.abs(wanted), initial=0.0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def assert_sites_close(got, wanted, tolerance):
    assert_close(got.linear, wanted.linear, tolerance)
    assert_close(got.precision, wanted.precision, tolerance)


def assert_energies_close(case, state, prefix):
    """Of a lone channel with normal noise: what the points leave open was part of it."""
    if golden.is_lone(state.model):
        got = state.absorbed.energy[0] + np.sum(state.absorbed.slack)
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
    theta, held = case.found["theta"], case.held("row")
    bound = episode.bound(episode.trial(with_free(case.state.model, theta)), held)
    beliefs = golden.remembering(case, episode._beliefs(case.state.model))
    value, gradient = beliefs.objective(theta, *bound)
    assert value == pytest.approx(float(case.found["objective"]), rel=1e-9)
    assert_close(gradient, case.found["gradient"])


@CASES
@pytest.mark.usefixtures("as_patient")
def test_a_step(read, with_memory, name):
    case = read(name)
    with_memory(case)
    found = case.found
    state, info = case.learner.step(case.state, case.rows)
    assert_close(info.log_predictive, found["step_scores"])
    assert info.e_rounds == found["step_e_rounds"]
    assert info.m_evaluations == found["step_m_evaluations"]
    assert state.count == found["step_count"]
    assert info.bound == pytest.approx(float(found["step_bound"]), rel=1e-8)
    assert_close(free_vector(state.model), found["step_theta"])
    assert_energies_close(case, state, "step")
    assert_sites_close(state.site, case.site("step_"), 1e-8)
    learner = dataclasses.replace(case.learner, weight_uncertainty=False)
    for d in range(sum(name.startswith("mean_") for name in found)):
        mean, covariance = learner.predict(state, found["grid"], d)
        assert_close(mean, found[f"mean_{d}"])
        assert_close(covariance, found[f"covariance_{d}"])


@CASES
def test_row_by_row(read, name):
    case = read(name)
    found = case.found
    state, scores = case.learner.filter(case.state, case.rows)
    assert_close(scores, found["filter_scores"])
    assert_sites_close(state.site, case.site("filter_"), 1e-8)
    assert_energies_close(case, state, "filter")
    assert state.count == found["filter_count"]
