"""Fleets: what is measured, at small sizes, and what the reports say of it."""

import dataclasses

import numpy as np

from streamgp_lab.races.catalogue import BENCHMARKS
from streamgp_lab.races.fleet import newcomers, speed, wards


def test_wards_have_rows_in_time_and_keys_that_differ():
    data = wards.ward(25, 2)
    assert [x.shape for x, _ in data.batches] == [(25, 20), (25, 5), (25, 5)]
    x = np.concatenate([x for x, _ in data.batches], axis=1)
    assert np.all(np.diff(x, axis=1) > 0)
    assert np.array_equal(data.batches[0][1][0], data.batches[0][1][20])  # of one prototype
    assert not np.array_equal(data.batches[1][1][0], data.batches[1][1][20])
    table = data.table(1)
    assert len(table) == 125
    own = table[table["key"] == 3].sort_values("time")
    assert np.array_equal(own["y"], data.batches[1][1][3])


def test_a_fleet_is_compared_with_the_same_models_in_a_loop(monkeypatch):
    monkeypatch.setattr(wards, "_PROTOTYPES", 3)
    loop, fleet = speed.without_learning(12, 4)
    assert (loop.keys, fleet.keys) == (4, 12)
    assert fleet.points <= 32
    assert fleet.apart < 1e-9
    slow = dataclasses.replace(fleet, seconds=loop.seconds, apart=1e-3)
    learned = [
        speed.Speed(speed.LEARNING_LOOP, 4, 30, 8e-3),
        speed.Speed(speed.LEARNING_FLEET, 4, 30, 7e-3, 0.0),
        speed.Speed(speed.SHARED, 9, 30, 2e-3),
    ]
    table, claims = speed.parts([loop, slow], learned)
    assert [claim.holds for claim in claims] == [False, False, True, False]
    assert [row[4] for row in table.rows] == ["1.0×", "1.0×", "1.0×", "1.1×", "4.0×"]


def test_growth_is_the_power_of_total_time():
    found = [speed.Speed(speed.FLEET, n, 30, 1e-4 * n**0.2) for n in (100, 1000, 10_000)]
    assert np.isclose(speed.exponent(found), 1.2)
    *_, claims = speed.growth_parts(found, (20e3, 50e3))
    assert [claim.holds for claim in claims] == [False, False]


def test_new_keys_are_scored_before_they_are_learned():
    new = newcomers.simulated(2, 18, 1)
    alone = newcomers.Newcomer("a", newcomers.ALONE, *newcomers.scores({}, {}, new))
    assert np.isfinite([alone.first, alone.tenth, alone.hundredth]).all()
    flights = newcomers.flights(2, 30, 5)
    assert [len(x) for x, _ in flights.values()] == [30, 30]
    good = newcomers.Newcomer("a", newcomers.POPULATION, 1.0, alone.hundredth - 1, 1.0)
    _, (claim,) = newcomers.parts([alone, good])
    assert claim.holds
    bad = dataclasses.replace(good, tenth=alone.hundredth + 1)
    _, (claim,) = newcomers.parts([alone, bad])
    assert not claim.holds


def test_the_benchmark_is_listed():
    assert "fleet" in BENCHMARKS
