"""Fleets with a store: they are fleets without one, but for memory and crashes."""

import gc

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp


def template():
    return sgp.ContinualGP(
        {"a": sgp.Gaussian(0.3), "b": sgp.Gaussian(0.3)},
        latents=sgp.Matern32(1.0, 1.0), learning=None, scale=False,
    )  # fmt: skip


def ward(beds, begin=0, rows=4, seed=0):
    """Rows of every bed; not all of them have both channels."""
    generator = np.random.default_rng([seed, begin])
    hours = np.tile(np.arange(begin, begin + rows) * 0.5, len(beds))
    values = generator.normal(size=(len(hours), 2))
    values[generator.uniform(size=values.shape) < 0.2] = np.nan
    values[::rows] = 0.0
    table = {"bed": np.repeat(beds, rows), "hour": hours, "a": values[:, 0], "b": values[:, 1]}
    return pd.DataFrame(table).sample(frac=1, random_state=seed)


def feed(fleet, table):
    report = fleet.update(table, key="bed", inputs="hour")
    assert not report.errors
    return report


BEDS = [f"bed {i}" for i in range(8)]


def live(fleet):
    gc.collect()
    return len(fleet._members.models._alive)


@pytest.fixture
def fleet(where):
    made = sgp.Fleet(template(), store=where, live=4)
    yield made
    made.close()


def test_a_fleet_with_a_store_is_one_without(fleet):
    plain = sgp.Fleet(template())
    for begin in (0, 4):
        for beds in (BEDS[:5], BEDS[3:]):
            table = ward(beds, begin)
            one, other = feed(fleet, table), feed(plain, table)
            columns = ["key", "channel", "observations", "log_predictive", "silence"]
            frames = [r.to_frame()[columns].sort_values(columns[:2]) for r in (one, other)]
            pd.testing.assert_frame_equal(*(f.reset_index(drop=True) for f in frames))
    assert live(fleet) <= 4
    assert sorted(fleet) == sorted(plain) == sorted(BEDS)
    assert len(fleet) == len(plain)
    assert fleet.latest == plain.latest
    for bed in BEDS:
        np.testing.assert_allclose(
            fleet[bed].predict([3.0], "a").mean, plain[bed].predict([3.0], "a").mean, rtol=1e-9
        )
    frames = [f.to_frame().sort_values(["key", "channel"]) for f in (fleet, plain)]
    pd.testing.assert_frame_equal(*(f.reset_index(drop=True) for f in frames))
    assert set(fleet.predict([1.0])) == set(BEDS)


def test_a_fleet_goes_on_in_another_process(where, fleet):
    whole = sgp.Fleet(template())
    for begin in (0, 4):
        feed(fleet, ward(BEDS, begin))
        feed(whole, ward(BEDS, begin))
    fleet.close()
    again = sgp.Fleet(template(), store=where, live=4)
    assert again.axes == whole.axes
    assert again.latest == whole.latest
    feed(again, ward(BEDS[:3], 8))
    feed(whole, ward(BEDS[:3], 8))
    for bed in BEDS:
        mean = [f[bed].predict([4.0], "b").mean for f in (again, whole)]
        np.testing.assert_allclose(*mean, rtol=1e-9)
        assert again[bed].observations == whole[bed].observations
    again.close()


def test_only_keys_that_changed_are_written(fleet):
    feed(fleet, ward(BEDS))
    before = {info.key: info.version for info in fleet.store.infos()}
    feed(fleet, ward(BEDS[2:4], 4))
    after = {info.key: info.version for info in fleet.store.infos()}
    assert {key for key in BEDS if before[key] != after[key]} == set(BEDS[2:4])


def test_updates_and_offsets_are_stored_together(fleet):
    with fleet.transaction() as change:
        feed(fleet, ward(BEDS))
        feed(fleet, ward(BEDS, 4))
        change.set_offset("feed", 8)
        assert list(fleet.store.keys()) == []
        assert len(fleet) == 8
    assert fleet.store.offset("feed") == 8
    assert len(fleet.store.keys()) == 8
    assert live(fleet) <= 4


def test_a_transaction_that_fails_leaves_the_fleet_as_it_was(fleet):
    feed(fleet, ward(BEDS))
    before = {bed: fleet[bed].to_bytes() for bed in BEDS}

    def fail():
        with fleet.transaction() as change:
            feed(fleet, ward([*BEDS, "new"], 4))
            fleet.remove(BEDS[0])
            change.set_offset("feed", 8)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert {bed: fleet[bed].to_bytes() for bed in fleet} == before
    assert "new" not in fleet
    assert fleet.store.offset("feed") is None
    feed(fleet, ward(BEDS, 4))
    assert fleet[BEDS[0]].observations["a"] > sgp.from_bytes(before[BEDS[0]]).observations["a"]


def test_an_update_that_is_interrupted_leaves_no_half(fleet, monkeypatch):
    """What was learned of it before would be learned again when the rows are sent again."""
    feed(fleet, ward(BEDS))
    before = {bed: fleet[bed].to_bytes() for bed in BEDS}
    calls = []

    def interrupted(self, *arguments, **settings):
        calls.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr("streamgp.fleet.work.Work.report", interrupted)
    with pytest.raises(KeyboardInterrupt):
        feed(fleet, ward(BEDS, 4))
    monkeypatch.undo()
    assert calls
    assert {bed: fleet[bed].to_bytes() for bed in BEDS} == before


def test_what_a_model_learns_by_itself_the_store_knows(fleet):
    feed(fleet, ward(BEDS))
    mine = fleet["bed 0"]
    mine.update({"a": (np.array([9.0]), np.zeros(1))})
    for bed in BEDS:  # so many that it is pushed out, but I hold it
        fleet[bed].predict([0.0], "a")
    assert fleet["bed 0"] is mine
    seen = mine.observations
    feed(fleet, ward(["bed 1"], 4))
    del mine
    assert live(fleet) <= 4
    assert fleet.store.get("bed 0").observations == seen


def test_keys_come_and_go(where, fleet):
    fleet.add("x")
    assert "x" in fleet
    assert fleet.store.keys() == ["x"]
    feed(fleet, ward(["y"]))
    assert sorted(fleet) == ["x", "y"]
    with pytest.raises(sgp.ConfigurationError):
        fleet.add("y")
    gone = fleet.remove("y")
    assert gone.observations["a"] > 0
    assert "y" not in fleet
    assert fleet.store.keys() == ["x"]
    with pytest.raises(KeyError):
        fleet["y"]
    with pytest.raises(KeyError):
        fleet.remove("y")
    feed(fleet, ward(["y"]))
    assert fleet["y"].observations == gone.observations


def test_keys_may_be_numbers_but_not_both(where, fleet):
    feed(fleet, ward(np.array([3, 20])))
    assert sorted(fleet) == [3, 20]
    assert 3 in fleet
    fleet.close()
    again = sgp.Fleet(template(), store=where)
    assert sorted(again) == [3, 20]
    for wrong in ("3", True, 2.5, ("a", 1)):
        with pytest.raises(sgp.DataError, match="a key that is number"):
            again.add(wrong)
    again.close()


def test_two_programs_do_not_overwrite_each_other(where, fleet):
    feed(fleet, ward(BEDS))
    both = list(fleet._members.models._recent)[-2:]
    other = sgp.Fleet(template(), store=where, live=4)
    feed(other, ward(both, 4))
    with pytest.raises(sgp.StaleError):
        feed(fleet, ward(both, 8))
    feed(fleet, ward(both, 8))  # it has read them again
    assert fleet[both[0]].observations == fleet.store.info(both[0]).observations
    assert fleet[both[0]].observations["a"] > other[both[0]].observations["a"]
    other.close()


def test_a_fleet_without_a_store_says_so():
    fleet = sgp.Fleet(template())
    for call in (fleet.close, lambda: fleet.store, lambda: fleet.transaction().__enter__()):
        with pytest.raises(sgp.ConfigurationError, match="a fleet with a store"):
            call()


def test_models_of_another_kind_are_not_taken_over(where, fleet):
    feed(fleet, ward(BEDS))
    with pytest.raises(sgp.ConfigurationError, match="of one kind"):
        sgp.Fleet(sgp.ContinualGP(sgp.Poisson()), store=where)


@pytest.mark.parametrize("kind", ["population", "shared"])
def test_what_is_common_to_all_keys_is_stored_too(tmp_path, kind):
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=sgp.Matern32(), learning=sgp.VEM(evaluations=3, every=10)
    )
    path = tmp_path / "ward.db"

    def rows(keys, begin, seed):
        generator = np.random.default_rng(seed)
        hours = np.tile(np.arange(begin, begin + 24) * 0.5, len(keys))
        values = np.sin(hours) + 0.1 * generator.normal(size=len(hours))
        return pd.DataFrame({"bed": np.repeat(keys, 24), "hour": hours, "y": values})

    keys = [f"bed {i}" for i in range(9)]
    plain = sgp.Fleet(model, **{kind: True})
    fleet = sgp.Fleet(model, store=path, live=3, **{kind: True})
    for each in (plain, fleet):
        feed(each, rows(keys, 0, 1))
    assert fleet.population is not None
    before = fleet._members.total

    def fail():
        with fleet.transaction():
            feed(fleet, rows(keys[:4], 24, 2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert fleet._members.total == before
    fleet.close()
    again = sgp.Fleet(model, store=path, live=3, **{kind: True})
    assert again._members.total == before == plain._members.total
    for each in (plain, again):
        feed(each, rows([*keys[:4], "new"], 24, 2))
    for bed in ("new", *keys):
        means = [each[bed].predict([20.0]).mean for each in (plain, again)]
        np.testing.assert_allclose(*means, rtol=0, atol=1e-6)
    again.close()


def test_keys_that_explore_further_than_they_began_come_back(where):
    """Over two inputs priors follow the ground; one model is in memory, so each is read again."""
    generator = np.random.default_rng(0)
    learning = sgp.VEM(rounds=1, evaluations=4)
    fleet = sgp.Fleet(sgp.ContinualGP(sgp.Gaussian(), learning=learning), store=where, live=1)
    for reach in (1.0, 1.0, 4.0):
        east, north = reach * generator.uniform(size=(2, 40))
        table = pd.DataFrame({"east": east, "north": north, "y": np.sin(3 * east)})
        table["bed"] = np.repeat(BEDS[:2], 20)
        assert not fleet.update(table, key="bed", inputs=["east", "north"]).errors
    assert all(fleet[bed].observations == {"y": 60} for bed in BEDS[:2])
    fleet.close()
