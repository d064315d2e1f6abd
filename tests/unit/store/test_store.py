"""Stores: what one transaction changes is there together or not at all, on every database."""

import datetime
import threading

import numpy as np
import pytest

import streamgp as sgp


def made(rows=8, seed=0, **settings):
    generator = np.random.default_rng(seed)
    model = sgp.ContinualGP(sgp.Gaussian(), **{"learning": None, "engine": "dense", **settings})
    model.update(np.linspace(0, 5, rows), generator.normal(size=rows))
    return model


def test_a_model_comes_back_as_it_was(store):
    model = made()
    model.notes["patient"] = "Ida"
    model._bookkeeping["run"] = {"rows": 8}
    store.put("Ida/heart", model)
    again = store.get("Ida/heart")
    assert again.to_bytes() == model.to_bytes()
    assert again.notes == {"patient": "Ida"}
    assert again._bookkeeping == {"run": {"rows": 8}}


def test_a_model_without_data_comes_back(store):
    store.put("new", sgp.ContinualGP({"a": sgp.Poisson(), "b": sgp.Gaussian()}))
    assert store.get("new").channels == ("a", "b")
    assert store.info("new").observations == {"a": 0, "b": 0}


def test_info_says_what_is_there_without_loading(store):
    before = datetime.datetime.now(datetime.UTC)
    model = made(8, engine="sparse")
    version = store.put("a", model)
    info = store.info("a")
    assert (info.key, info.version, info.updates) == ("a", version, 1)
    assert info.observations == {"y": 8}
    assert info.size == len(model.to_bytes())
    slack = datetime.timedelta(seconds=1)
    assert before - slack <= info.changed <= datetime.datetime.now(datetime.UTC) + slack


def test_keys_are_listed_in_order_by_prefix(store):
    model = made()
    names = ["b/2", "b/10", "a", "%", "_x", "é", "b", "\U0010ffff", "b/é'\""]
    with store.transaction() as change:
        for name in names:
            change.put(name, model)
    assert store.keys() == sorted(names)
    assert store.keys("b/") == ["b/10", "b/2", "b/é'\""]
    assert store.keys("_") == ["_x"]
    assert store.keys("\U0010ffff") == ["\U0010ffff"]
    assert [info.key for info in store.infos("b/")] == store.keys("b/")
    assert "é" in store
    assert "e" not in store


def test_one_transaction_changes_everything_or_nothing(store):
    with store.transaction() as change:
        change.put("a", made(seed=1))
        change.put("b", made(seed=2))
        change.set_offset("feed", {"partition": [3, 17]})
        change.record("request 1", b"\x00answer")
        assert store.keys() == []
    assert store.keys() == ["a", "b"]
    assert store.offset("feed") == {"partition": [3, 17]}
    assert store.answer("request 1") == b"\x00answer"
    assert set(change.versions) == {"a", "b"}

    def fail():
        with store.transaction() as change:
            change.put("c", made(seed=1))
            change.delete("a")
            change.set_offset("feed", None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.keys() == ["a", "b"]
    assert store.offset("feed") == {"partition": [3, 17]}


def test_a_request_is_recorded_once(store):
    with store.transaction() as change:
        change.record("r", b"first")

    def again():
        with store.transaction() as change:
            change.put("a", made())
            change.record("r", b"second")

    with pytest.raises(sgp.StaleError, match="not handled yet"):
        again()
    assert store.answer("r") == b"first"
    assert "a" not in store
    assert store.answer("another") is None


def test_old_answers_are_forgotten(store):
    for name in ("one", "two"):
        with store.transaction() as change:
            change.record(name, b"")
    assert store.forget_answers(datetime.timedelta(hours=1)) == 0
    assert store.forget_answers(datetime.timedelta(seconds=-1)) == 2
    assert store.answer("one") is None


def test_a_change_that_another_has_overtaken_is_refused(store):
    first = store.put("a", made(seed=1), version=0)
    second = store.put("a", made(seed=2), version=first)
    assert second > first
    with pytest.raises(sgp.StaleError, match=f"version {first} of 'a'"):
        store.put("a", made(seed=3), version=first)
    with pytest.raises(sgp.StaleError, match="no model of 'a'"):
        store.put("a", made(seed=3), version=0)
    with pytest.raises(sgp.StaleError, match="got no model"):
        store.put("b", made(seed=3), version=first)
    with pytest.raises(sgp.StaleError):
        store.delete("a", version=first)
    assert store.fetch("a").info.version == second
    assert store.get("a").to_bytes() == made(seed=2).to_bytes()
    store.delete("a", version=second)
    assert store.put("a", made()) > second


def test_what_is_not_there_is_said_so(store):
    for call in (store.get, store.fetch, store.info, store.delete):
        with pytest.raises(
            sgp.UnknownKeyError, match="expected the key of a stored model; got 'x'"
        ):
            call("x")
    with pytest.raises(KeyError):
        store.get("x")
    assert store.offset("x") is None
    assert store.fetch_many(["x"]) == {}


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "k" * 1025, 3, None])
def test_keys_that_no_database_holds_are_refused(store, key):
    for call in (store.get, store.info, store.offset, store.answer):
        with pytest.raises(sgp.DataError, match="Unicode text"):
            call(key)
    with pytest.raises(sgp.DataError), store.transaction() as change:
        change.put(key, made())


def test_an_offset_is_what_json_has(store):
    for bad in (float("nan"), object(), {"a": b""}):
        with pytest.raises(sgp.DataError, match="JSON"), store.transaction() as change:
            change.set_offset("s", bad)
    with store.transaction() as change:
        change.set_offset("s", [1, None, "x", 0.1])
    assert store.offset("s") == [1, None, "x", 0.1]


def test_many_models_at_once(store):
    few = [made(3, seed=i) for i in range(5)]
    models = {f"key {i:04}": few[i % 5] for i in range(510)}  # more than one query asks for
    with store.transaction() as change:
        for key, model in models.items():
            change.put(key, model)
    found = store.fetch_many([*models][5:])
    assert {key: found[key].model.to_bytes() for key in [*models][5::50]} == {
        key: models[key].to_bytes() for key in [*models][5::50]
    }
    assert len(found) == 505


def test_threads_lose_no_change(store):
    store.put("count", made())
    with store.transaction() as change:
        change.set_offset("n", 0)
    failures = []

    def add():
        for _ in range(10):
            while True:
                stored = store.fetch("count")
                stored.model.notes["n"] = stored.model.notes.get("n", 0) + 1
                try:
                    store.put("count", stored.model, version=stored.info.version)
                    break
                except sgp.StaleError:
                    continue
                except BaseException as error:
                    failures.append(error)
                    raise

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert store.get("count").notes["n"] == 40


def test_readers_see_the_last_commit_and_do_not_wait(store):
    store.put("a", made(seed=1))
    with store._backend.writing() as session:
        session.run("DELETE FROM streamgp_models")
        assert store.get("a").to_bytes() == made(seed=1).to_bytes()
    assert store.keys() == []


def test_a_store_opens_again(where):
    with sgp.Store(where) as store:
        store.put("a", made())
    store.put("b", made())  # one that was closed opens again
    store.close()
    with sgp.Store(where) as other:
        assert other.keys() == ["a", "b"]


def test_what_belongs_to_a_model_goes_with_it(store):
    for key in ("a", "b"):
        with store.transaction() as change:
            change.put(key, made())
            change.set_offset("feed", key, model=key)
            change.record("r", key.encode(), model=key)
            change.record(f"only {key}", b"", model=key)
    with store.transaction() as change:
        change.set_offset("feed", "nobody's")
        change.record("r", b"nobody's")
    assert store.offset("feed", model="a") == "a"
    assert store.answers("r", ["a", "b", "c"]) == {"a": b"a", "b": b"b"}
    life = store.life("a")
    assert (life.offsets, life.answers) == ({"feed": "a"}, {"r": b"a", "only a": b""})
    assert len(store.life("a", answers=1).answers) == 1
    assert store.versions(["a", "c"]) == {"a": life.stored.info.version}
    with pytest.raises(sgp.StaleError, match="not handled yet"), store.transaction() as change:
        change.record("r", b"again", model="a")

    store.delete("a")
    store.put("a", made())
    assert store.offset("feed", model="a") is None
    assert store.answer("r", model="a") is None
    assert store.life("a").answers == {}
    assert (store.offset("feed", model="b"), store.answer("r", model="b")) == ("b", b"b")
    assert (store.offset("feed"), store.answer("r")) == ("nobody's", b"nobody's")


def test_nothing_belongs_to_a_model_that_is_not_there(store):
    with pytest.raises(sgp.StaleError, match="belongs"), store.transaction() as change:
        change.set_offset("feed", 1, model="never")
    with pytest.raises(sgp.StaleError, match="belongs"), store.transaction() as change:
        change.record("r", b"", model="never")
    assert store.offset("feed", model="never") is None
    with pytest.raises(sgp.UnknownKeyError):
        store.life("never")


def test_many_answers_of_a_new_model(store):
    with store.transaction() as change:
        change.put("a", made())
        for number in range(2000):
            change.record(f"{number}", b"", model="a")
    assert [*store.life("a", answers=3).answers] == [*store.life("a").answers][-3:]
    assert len(store.life("a").answers) == 2000
