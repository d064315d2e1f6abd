"""Fleets of a service: many keys in one request, and what new keys start from."""

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.service import keyed
from tests.service.running import SPECIFICATION, rows, serving, specification

LEARNED = {
    "channels": {"level": "Gaussian"},
    "data": {"inputs": "hour"},
    "model": {"latents": [{"kind": "Matern32", "lengthscale": 1.0}]},
}
KEYS = ["north-7", "south", "3"]
ASKED = {"inputs": [0.3, 1.7], "channels": ["level"]}


def table(count, begin=0, keys=KEYS):
    """Rows of all keys, one after the other."""
    parts = [rows(count, begin, seed) for seed in range(len(keys))]
    return [
        {"pump": key, **row}
        for batch in zip(*parts, strict=True)
        for key, row in zip(keys, batch, strict=True)
    ]


def post(service, body, fleet="pumps", **headers):
    return service.post(f"/v1/fleets/{fleet}/observations?key=pump", json=body, headers=headers)


def means(service, key):
    answer = service.post(f"/v1/fleets/pumps/{key}/predict", json=ASKED).json()
    return answer["channels"]["level"]["mean"]


@pytest.mark.parametrize("stream", [{}, {"samples": True}])
@pytest.mark.parametrize("model", [SPECIFICATION["model"], {"learning": False}])
def test_one_request_is_as_one_for_each_key(service, stream, model):
    for name in ("pumps", "singly"):
        body = specification(name, model=model, stream=stream)
        assert service.post("/v1/fleets", json=body).status_code == 201
    for begin in (0, 12, 16):
        answer = post(service, table(4, begin)).json()
        assert answer["updated"] == 3
        assert answer["begun"] == (KEYS if begin == 0 else [])
        assert answer["observations"] == {"level": 12, "alarm": 12}
        assert answer["errors"] == {}
        for seed, key in enumerate(KEYS):
            body = rows(4, begin, seed)
            service.post(f"/v1/fleets/singly/{key}/observations", json=body)
    for key in KEYS:
        one, other = (service.get(f"/v1/fleets/{f}/{key}").json() for f in ("pumps", "singly"))
        for name in ("updates", "observations", "latest", "inducing_points", "specification"):
            assert one[name] == other[name]
        found = [
            service.post(f"/v1/fleets/{f}/{key}/predict", json=ASKED).json()
            for f in ("pumps", "singly")
        ]
        np.testing.assert_allclose(
            *(f["channels"]["level"]["mean"] for f in found), rtol=1e-8, atol=1e-9
        )
        one, other = (
            service.get(f"/v1/fleets/{f}/{key}/history").json()["columns"]
            for f in ("pumps", "singly")
        )
        assert one.keys() == other.keys()
        for name in one.keys() - {"budget_spent", "open_variance"}:
            np.testing.assert_allclose(
                np.array(one[name], float), np.array(other[name], float), rtol=1e-6, atol=1e-8
            )


def test_reports_and_pictures_of_keys(service):
    service.post("/v1/fleets", json=specification("pumps"))
    post(service, table(4))
    report = service.get("/v1/fleets/pumps/south/report").json()
    assert report["observations"] == {"level": 4, "alarm": 4}
    assert len(service.get("/v1/fleets/pumps/south/picture").json()["rows"]) == 8


def test_rows_that_are_wrong_are_those_of_their_key_alone(service):
    service.post("/v1/fleets", json=specification("pumps"))
    post(service, table(4))
    before = {key: means(service, key) for key in KEYS}
    bad = [*table(4, 4), {"pump": "south", "hour": 3.0, "level": "high"}]
    bad += [{"pump": "new", "hour": 3.0, "alarm": 7}]
    answer = post(service, bad)
    assert answer.status_code == 200
    said = answer.json()
    assert said["updated"] == 2
    assert set(said["errors"]) == {"south", "new"}
    assert said["errors"]["new"]["remedy"]
    assert means(service, "south") == before["south"]
    assert means(service, "3") != before["3"]
    assert service.get("/v1/fleets/pumps/new").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([{"hour": 1.0, "level": 2.0}], 422),
        ([{"pump": "../x", "hour": 1.0, "level": 2.0}], 422),
        ([{"pump": "a", "hour": 1.0, "level": 2.0}, {"hour": 1.0, "level": 2.0}], 422),
        ([{"pump": "a", "level": 2.0}], 422),
        ([], 422),
    ],
)
def test_requests_that_make_no_sense(service, body, status):
    service.post("/v1/fleets", json=specification("pumps"))
    answer = post(service, body)
    assert answer.status_code == status, answer.text
    assert answer.json()["remedy"]
    assert service.get("/v1/fleets/pumps").json()["total"] == 0
    assert post(service, body, "none").status_code == 404


def test_a_request_is_learned_once(tmp_path):
    with serving(tmp_path / "models.db") as service:
        service.post("/v1/fleets", json=specification("pumps"))
        first = post(service, table(4), **{"Idempotency-Key": "a"}).json()
    with serving(tmp_path / "models.db") as service:
        again = post(service, table(4), **{"Idempotency-Key": "a"}).json()
        assert again == {**first, "repeated": True}
        assert service.get("/v1/fleets/pumps/south").json()["updates"] == 1
        other = post(service, table(5), **{"Idempotency-Key": "a"})
        assert other.status_code == 422


def test_there_is_room_for_so_many_models(tmp_path):
    with serving(tmp_path / "models.db", models=3) as service:
        service.post("/v1/fleets", json=specification("pumps"))
        assert post(service, table(4)).status_code == 409
        assert post(service, table(4, keys=KEYS[:2])).status_code == 200
        assert post(service, table(4, 4, keys=KEYS[:2])).status_code == 200


def test_a_key_that_learns_by_itself_meanwhile(service, monkeypatch):
    service.post("/v1/fleets", json=specification("pumps"))
    post(service, table(4))
    usual, done = keyed._done, []

    def disturbed(*given):
        if not done:
            done.append(service.post("/v1/fleets/pumps/south/observations", json=rows(4, 4, 1)))
        return usual(*given)

    monkeypatch.setattr(keyed, "_done", disturbed)
    answer = post(service, table(4, 8))
    assert done[0].status_code == answer.status_code == 200
    assert service.get("/v1/fleets/pumps/south").json()["observations"]["level"] == 12
    assert service.get("/v1/fleets/pumps/3").json()["observations"]["level"] == 8


def test_what_is_committed_later_is_seen(service, monkeypatch):
    """A thread that has committed first may be the last to tell of it."""
    service.post("/v1/fleets", json=specification("pumps"))
    post(service, table(4))
    key, cache = "member/pumps/south", service.engine.cache
    old = cache.get(key)
    service.post("/v1/fleets/pumps/south/observations", json=rows(4, 4, 1))
    cache.publish(key, old)
    assert service.get("/v1/fleets/pumps/south").json()["updates"] == 2


def patients(keys, count=40, seed=0):
    generator = np.random.default_rng(seed)
    found = []
    for key in keys:
        t = np.sort(generator.uniform(0, 20, count))
        y = 50 + 3 * np.sin(t * 1.3 + generator.uniform(0, 6)) + 0.5 * generator.normal(size=count)
        found += [
            {"pump": key, "hour": a, "level": b}
            for a, b in zip(t.tolist(), y.tolist(), strict=True)
        ]
    return found


@pytest.mark.parametrize("population", [True, False])
def test_new_keys_start_from_what_the_others_have_learned(tmp_path, population):
    few = patients(["new"], 4, seed=5)
    with serving(tmp_path / "models.db") as service:
        body = {"name": "pumps", **LEARNED, "population": population}
        assert service.post("/v1/fleets", json=body).status_code == 201
        assert post(service, patients([f"p{i}" for i in range(9)])).json()["learned"] == 9
        assert service.get("/v1/fleets/pumps").json()["pooled_keys"] == 0
        post(service, few)
        listed = service.get("/v1/fleets/pumps").json()
        assert listed["population"] is population
        assert (listed["pooled_keys"] >= 8) is population
        shared = service.engine.read("member/pumps/new").model.hyperparameters
    with serving(tmp_path / "models.db") as service:  # it is kept, and by one key the same
        other = [{k: v for k, v in row.items() if k != "pump"} for row in few]
        service.post("/v1/fleets/pumps/other/observations", json=other)
        assert service.engine.read("member/pumps/other").model.hyperparameters == shared
        assert "fleet" not in service.engine.read("member/pumps/other").model._bookkeeping
    alone = sgp.ContinualGP({"level": sgp.Gaussian()}, latents=[sgp.kernels.Matern32(1.0)])

    alone.update(pd.DataFrame(other), inputs="hour")
    assert (alone.hyperparameters == shared) is not population
