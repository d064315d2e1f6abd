"""Long streams: what is measured, at small sizes, and what the reports say of it."""

import dataclasses
import json

import numpy as np
import pytest

import streamgp as sgp
from streamgp.errors import ConfigurationError
from streamgp_lab.baselines.smoother import Matern
from streamgp_lab.cli import bench as command
from streamgp_lab.races.benchmark import Settings
from streamgp_lab.races.long import accuracy, bench, cost, million, refits, streams, sunspots, year
from streamgp_lab.races.long.cost import Held, Work


def quick_year():
    """The channels of the year, each with a rough function of its own; nothing is learned."""
    channels = year.channels()
    own = {name: np.eye(4)[[d]] for d, name in enumerate(channels)}
    return sgp.ContinualGP(channels, latents=[sgp.Matern32(0.2)] * 4, mixing=own, learning=None)


def test_streams_are_in_order_and_noisy():
    data = streams.stream(300)
    assert (len(data.x), len(data.at)) == (3000, 600)
    assert np.all(np.diff(data.x) >= 0)
    assert np.all(np.diff(data.at) >= 0)
    np.testing.assert_allclose(np.std(data.y_at - data.f), 0.3, rtol=0.15)


def test_the_chain_is_as_accurate_as_the_exact_smoother():
    found = accuracy.known(20, 4)
    exact, chain, shuffled, dense = found
    assert chain.farthest < 0.01
    assert dense.farthest < 0.1
    np.testing.assert_allclose(chain.nlpd, exact.nlpd, atol=1e-3)
    assert exact.farthest == 0
    table, claims = accuracy.known_parts(found)
    assert [claims[0].holds, claims[2].holds] == [True, True]
    assert [row[1] for row in table.rows] == [each.method for each in found]
    far = dataclasses.replace(chain, farthest=0.5, nlpd=exact.nlpd + 0.1)
    near = dataclasses.replace(shuffled, farthest=0.001)
    _, claims = accuracy.known_parts([exact, far, near, dense])
    assert [claim.holds for claim in claims] == [False, True, False]


def test_what_is_learned_is_offline_maximum_likelihood():
    found = accuracy.learning(60, 4)
    offline, _, refined, _ = found
    assert refined.method == accuracy.REFINED
    np.testing.assert_allclose(refined.found, offline.found, rtol=0.05)
    assert min(each.short for each in found) > -1e-3  # none is above the largest
    assert refined.short < 0.1
    off = dataclasses.replace(refined, found=Matern(3.0, 1.0, 0.3))
    _, (claim,) = accuracy.learning_parts([offline, off])
    assert claim.holds is False


def test_costs_are_measured_on_copies(monkeypatch):
    monkeypatch.setattr(cost, "_REPEATS", 1)
    monkeypatch.setattr(cost, "_MOST", 1)
    data = streams.stream(14)
    model = cost._grown(data)
    before = model.to_bytes()
    found = cost._works(model, data)
    assert model.to_bytes() == before
    assert all(seconds > 0 for seconds in found.values())
    held = cost._held(model, len(model.inducing_points[0]))
    assert held.asked > held.kept > 0
    assert held.file == len(before) / held.size


def test_claims_about_growth():
    sizes = [100, 1000, 10_000]
    names = (cost._HUNDRED, cost._FIRST, cost._MANY, cost._FILTER)
    flat, square = [1.0] * 3, [s**2.0 for s in sizes]
    works = [Work(name, sizes, flat) for name in names]
    assert [claim.holds for claim in cost.claims(works)] == [True] * 3
    works = [Work(name, sizes, square) for name in names]
    assert [claim.holds for claim in cost.claims(works)] == [False] * 3
    linear = [Work(name, sizes, [1.0 * s for s in sizes]) for name in names]
    assert [claim.holds for claim in cost.claims(linear)] == [False, True, False]
    works[2] = Work(cost._MANY, sizes, [2.0 * s**2 for s in sizes])
    table, _, _, memory = cost.parts(works, [Held(100, 1.0, 2.0, 3.0)])
    assert table.rows[0][-1] == "2.00"
    assert table.rows[-1][1:] == ["0.5×"] * 3 + [""]
    assert memory.rows == [["100", "1", "2", "3"]]


def test_single_samples_have_milestones():
    first, last = million.measure(1200)
    assert (first.seen, last.seen) == (1000, 1200)
    assert last.rmse < 0.3
    assert last.points > first.points
    (table,) = million.parts([first, last])
    assert [row[0] for row in table.rows] == ["1,000", "1,200"]


def test_sunspots_on_both_engines():
    found = sunspots.measure(0.1)
    assert [each.engine for each in found] == ["chain", "dense"] * 2
    assert all(np.isfinite(each.nlpd) for each in found)
    worse = [
        dataclasses.replace(each, nlpd=9.0) if each.engine == "chain" else each for each in found
    ]
    _, claims = sunspots.parts(worse)
    assert [claim.holds for claim in claims] == [False, False]


def test_a_year_has_four_channels_with_gaps():
    data = year.load()
    assert {name: len(y) for name, (_, y) in data.items()} == {
        "temperature": 8706,
        "departures": 8760,
        "rain": 8706,
        "pressure": 7875,
    }
    assert len(year._week(data, 1)["departures"][0]) == 168
    assert set(np.unique(data["rain"][1])) == {0.0, 1.0}


def test_weeks_are_scored_when_learned_and_at_the_end(monkeypatch):
    monkeypatch.setattr(year, "model", quick_year)
    found = year.measure(2)
    assert len(found.seconds) == 2
    for name in found.rows:
        assert np.isfinite(found.loss(name)).all()
        assert found.loss(name)[1] == pytest.approx(0.0, abs=1e-9)  # nothing came after it
        assert np.all(found.ahead[name] > found.when_learned[name])
        # Nothing was learned but the data, so hyperparameters were the same all along. What a
        # week said of f through a Student-t likelihood depends a little on where it began.
        np.testing.assert_allclose(found.known[name], found.loss(name), atol=1e-2)
        assert np.isfinite(found.refits[name][1])
    lost = {**found.now, "rain": found.when_learned["rain"] + [0.0, 0.7]}
    table, took, claims, _ = year.parts(dataclasses.replace(found, now=lost))
    assert table.rows[2][7] == "+0.700 (week 2)"
    assert not claims[4].holds
    assert year.claims(dataclasses.replace(found, now=found.when_learned))[4].holds
    assert took.startswith("2 weeks took")
    assert took.endswith(f"the file has {found.file / 1e6:.3g} MB.")


def test_a_tenth_of_the_hours_is_never_learned():
    data = year.load()
    learned, held_out = year.apart(data)
    for name, (t, _) in data.items():
        np.testing.assert_array_equal(np.sort(np.r_[learned[name][0], held_out[name][0]]), t)
        assert len(held_out[name][0]) == pytest.approx(0.1 * len(t), rel=0.1)
        assert set(held_out[name][0]) <= set(held_out["departures"][0])  # which has no gaps


def test_regressions_find_seasons():
    t = np.arange(24 * 28) / 24.0  # twice a day is none of the waves of a week
    rate = np.exp(2 + np.sin(4 * np.pi * t))
    draws = np.random.default_rng(0)
    data = {
        "temperature": (t, np.cos(4 * np.pi * t) + 0.1 * draws.normal(size=len(t))),
        "departures": (t, draws.poisson(rate).astype(float)),
        "rain": (t, (draws.random(len(t)) < 0.5 + 0.4 * np.sin(4 * np.pi * t)).astype(float)),
    }
    weeks = [{n: (t[k::4], y[k::4]) for n, (t, y) in data.items()} for k in range(4)]
    ahead, _ = refits.refitted(weeks, weeks)
    assert ahead[0] == {}
    assert ahead[3]["temperature"] < -0.7  # with its noise alone it would be −0.88
    assert ahead[3]["departures"] < 2.6  # with the true rate 2.3, with a constant one 3.6
    assert ahead[3]["rain"] < 0.63  # without a season 0.69


def test_full_adds_what_takes_long(tmp_path, monkeypatch):
    asked = {}
    for name in ("_accuracy", "_cost", "_million"):
        monkeypatch.setattr(
            bench, name, lambda what, name=name: asked.setdefault(name, []).append(what)
        )
    for full in (False, True):
        for topic in bench.topics(Settings(tmp_path, full=full)):
            if topic.name in ("accuracy", "cost", "samples"):
                topic.run()
    assert asked["_cost"] == [[100, 1000, 10_000], [100, 1000, 10_000, 100_000]]
    assert asked["_million"] == [10_000, 1_000_000]
    assert asked["_accuracy"][1][-1] == (10_000, 1000)


def test_topics_can_be_chosen(tmp_path):
    found = bench.topics(Settings(tmp_path, only=("samples", "cost")))
    assert [topic.name for topic in found] == ["cost", "samples"]
    with pytest.raises(ConfigurationError, match="a topic among"):
        bench.topics(Settings(tmp_path, only=("costs",)))


def test_the_report_of_a_small_share(tmp_path, monkeypatch):
    monkeypatch.setattr(year, "model", quick_year)
    for name, sizes in (("_LENGTHS", [10]), ("_LEARNED_LENGTHS", [10]), ("_SIZES", [50, 100])):
        monkeypatch.setattr(bench, name, sizes)
    command.run(["long"], tmp_path, peers=tmp_path, share=0.04)
    text = (tmp_path / "long.md").read_text()
    for caption in ("Accuracy over length", "Bytes per kept row", "Sunspots", "A year"):
        assert caption in text
    measured = json.loads((tmp_path / "long.json").read_text())["measured"]
    assert set(measured) == {topic.name for topic in bench.topics(Settings(tmp_path))}
