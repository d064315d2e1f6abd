"""What was answered belongs to one life of a model: from its making or import to its deletion."""

import datetime
import time

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.cli import main, serve
from streamgp.client import Client, ServiceError
from tests.service.running import rows, serving, specification
from tests.service.test_feeding import lines, wait_for
from tests.service.test_fleets import KEYS, table
from tests.service.test_routes import is_problem

PLANT = "/v1/models/plant"


def send(service, number, where=PLANT):
    """Send a batch under a key of its own; whether it was answered as repeated."""
    headers = {"Idempotency-Key": f"batch-{number}"}
    answer = service.post(f"{where}/observations", json=rows(4, 4 * number), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["repeated"]


def send_keyed(service, number, fleet="pumps"):
    headers = {"Idempotency-Key": f"batch-{number}"}
    where = f"/v1/fleets/{fleet}/observations?key=pump"
    return service.post(where, json=table(4, 4 * number), headers=headers).json()


def level(service, where=PLANT):
    return service.get(where).json()["observations"]["level"]


def predicted(service):
    asked = {"inputs": [[0.5, 0.5], [3.0, 3.0]]}
    return service.post(f"{PLANT}/predict", json=asked).json()["channels"]


# -- lives ---------------------------------------------------------------------------------------


def test_a_model_that_is_made_anew_has_handled_nothing(service):
    service.post("/v1/models", json=specification("plant"))
    assert [send(service, number) for number in (0, 1, 0)] == [False, False, True]
    service.delete(PLANT)
    service.post("/v1/models", json=specification("plant"))
    assert [send(service, number) for number in (0, 1, 0, 1)] == [False, False, True, True]
    assert level(service) == 8


def test_an_import_has_handled_what_its_export_had(service):
    service.post("/v1/models", json=specification("plant"))
    send(service, 0)
    export = service.get(f"{PLANT}/file").content
    send(service, 1)
    final = service.get(f"{PLANT}/file").content
    service.delete(PLANT)
    for where in (PLANT, "/v1/models/other"):  # where it was, and beside it
        assert service.put(f"{where}/file", content=export).status_code == 201
        assert [send(service, number, where) for number in (0, 1, 1)] == [True, False, True]
        assert level(service, where) == 8
        assert service.get(f"{where}/file").content == final
    assert sgp.from_bytes(final).observations["level"] == 8


def test_a_model_that_explores_further_than_it_began_is_exported_and_read_again(tmp_path):
    """Over two inputs its priors follow the ground."""
    generator = np.random.default_rng(0)
    where = tmp_path / "models.db"
    tables = {"channels": {"level": "Gaussian"}, "data": {"inputs": ["east", "north"]}}
    with serving(where) as service:
        service.post("/v1/models", json={"name": "plant", **tables})
        for reach in (1.0, 1.0, 4.0):
            at = reach * generator.uniform(size=(20, 2))
            batch = [{"east": a, "north": b, "level": np.sin(3 * a)} for a, b in at]
            assert service.post(f"{PLANT}/observations", json=batch).status_code == 200
        exported = service.get(f"{PLANT}/file").content
        expected = predicted(service)
    assert sgp.from_bytes(exported).observations == {"level": 60}
    with serving(where) as service:
        assert predicted(service) == expected
        assert service.put("/v1/models/other/file", content=exported).status_code == 201


def test_a_repeated_batch_after_an_import_is_answered_in_brief(service):
    service.post("/v1/models", json=specification("plant"))
    key = {"Idempotency-Key": "one"}
    first = service.post(f"{PLANT}/observations", json=rows(), headers=key).json()
    export = service.get(f"{PLANT}/file").content
    service.delete(PLANT)
    service.put(f"{PLANT}/file", content=export)
    again = service.post(f"{PLANT}/observations", json=rows(), headers=key).json()
    brief = {name: first[name] for name in ("update", "result", "observations")}
    assert again == {**brief, "repeated": True}
    is_problem(service.post(f"{PLANT}/observations", json=rows(3), headers=key), 422)


def test_a_model_of_another_program_has_handled_what_it_says(service):
    """A file that was downloaded, fed elsewhere and uploaded again has all that it had."""
    service.post("/v1/models", json=specification("plant"))
    send(service, 0)
    with Client(str(service.base_url)) as client:
        here = client.model("plant").download()
        here.update(pd.DataFrame(rows(4, 4)), inputs="hour")
        client.upload("fed", here)
    assert [send(service, n, "/v1/models/fed") for n in (0, 2)] == [True, False]
    assert level(service, "/v1/models/fed") == 12


@pytest.mark.parametrize(
    "kept",
    [
        "no json",
        7,
        '{"offsets": {}}',
        '{"offsets": {}, "answers": {"": {"digest": "d", "report": {}}}}',
        '{"offsets": {}, "answers": {"r": {"digest": 1, "report": {}}}}',
        '{"offsets": {}, "answers": {"r": {"digest": "d", "report": {"other": 1}}}}',
        '{"offsets": [], "answers": {}}',
    ],
)
def test_a_file_that_says_something_else_of_requests_is_refused(shared, kept):
    model = sgp.ContinualGP(sgp.Gaussian())
    model._bookkeeping["handled"] = kept
    is_problem(shared.put("/v1/models/bad/file", content=model.to_bytes()), 422)


@pytest.mark.parametrize("stream", [{}, {"samples": True}])
def test_a_key_of_a_fleet_that_is_made_anew_learns_what_is_sent_again(service, stream):
    service.post("/v1/fleets", json=specification("pumps", stream=stream))
    first = send_keyed(service, 0)
    assert (first["updated"], first["repeated"]) == (3, False)
    service.delete("/v1/fleets/pumps/south")
    again = send_keyed(service, 0)
    assert (again["updated"], again["begun"], again["repeated"]) == (1, ["south"], False)
    assert again["observations"] == {"level": 4, "alarm": 4}
    assert {**send_keyed(service, 0), "repeated": False} == first
    assert [level(service, f"/v1/fleets/pumps/{key}") for key in KEYS] == [4, 4, 4]
    changed = service.post(
        "/v1/fleets/pumps/observations?key=pump",
        json=table(3),
        headers={"Idempotency-Key": "batch-0"},
    )
    is_problem(changed, 422)


def test_a_fleet_that_is_restored_from_exports_learns_the_rest(service):
    service.post("/v1/fleets", json=specification("pumps"))
    send_keyed(service, 0)
    exports = {k: service.get(f"/v1/fleets/pumps/{k}/file").content for k in KEYS}
    send_keyed(service, 1)
    service.delete("/v1/fleets/pumps", params={"members": True})
    service.post("/v1/fleets", json=specification("pumps"))
    for key in KEYS[:2]:  # the third one is lost
        service.put(f"/v1/fleets/pumps/{key}/file", content=exports[key])
    assert [send_keyed(service, n)["updated"] for n in (0, 1)] == [1, 3]
    assert all(send_keyed(service, n)["repeated"] for n in (0, 1))
    assert [level(service, f"/v1/fleets/pumps/{key}") for key in KEYS] == [8, 8, 8]
    for key in KEYS:
        service.delete(f"/v1/fleets/pumps/{key}")
    service.delete("/v1/fleets/pumps")
    service.post("/v1/fleets", json=specification("pumps"))
    for key in KEYS:
        service.put(f"/v1/fleets/pumps/{key}/file", content=exports[key])
    again = send_keyed(service, 0)
    assert (again["updated"], again["repeated"]) == (0, True)


def test_rows_that_were_refused_are_not_learned_when_they_are_sent_again(service):
    service.post("/v1/fleets", json=specification("pumps"))
    body = [*table(4), {"pump": "bad", "hour": 1.0, "alarm": 7}]
    key = {"Idempotency-Key": "one"}
    where = "/v1/fleets/pumps/observations?key=pump"
    first = service.post(where, json=body, headers=key).json()
    assert set(first["errors"]) == {"bad"}
    assert service.post(where, json=body, headers=key).json() == {**first, "repeated": True}


def test_a_feed_begins_anew_with_a_model_and_goes_on_with_an_import(tmp_path):
    path = tmp_path / "readings.jsonl"
    path.write_text(lines(rows(10)))
    sources = tuple(f"file://{path}?model={name}" for name in ("plant", "other"))
    with serving(tmp_path / "models.db", sources=sources) as service:
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 10) == 10
        export = service.get(f"{PLANT}/file").content
        service.delete(PLANT)
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 10) == 10  # though nothing new has come
        service.delete(PLANT)
        with path.open("a") as file:
            file.write(lines(rows(5, begin=10)))
        service.put(f"{PLANT}/file", content=export)
        service.put("/v1/models/other/file", content=export)
        assert wait_for(service, 15) == 15
        time.sleep(0.5)
        assert wait_for(service, 15) == 15
        until = time.monotonic() + 30
        while level(service, "/v1/models/other") < 15 and time.monotonic() < until:
            time.sleep(0.02)
        assert level(service, "/v1/models/other") == 15


# -- two services on one store -------------------------------------------------------------------


@pytest.fixture
def both(tmp_path):
    with serving(tmp_path / "models.db") as one, serving(tmp_path / "models.db") as other:
        yield one, other


def test_two_services_of_one_store_see_the_same_models(both):
    one, other = both
    one.post("/v1/models", json=specification("plant"))
    for number in range(3):
        send(one, number)
        assert level(other) == level(one) == 4 * (number + 1)
        asked = {"inputs": [0.5], "channels": ["level"]}
        predicted = [s.post(f"{PLANT}/predict", json=asked).json() for s in both]
        assert predicted[0] == predicted[1]
    assert send(other, 1)
    assert not send(other, 3)
    assert level(one) == 16
    text = 'streamgp_model_observations{model="plant"}'
    assert f"{text} 32.0" in one.get("/metrics").text
    assert other.get(f"{PLANT}/file").content == one.get(f"{PLANT}/file").content


def test_a_model_that_the_other_service_replaced_is_seen(both):
    one, other = both
    one.post("/v1/models", json=specification("plant"))
    send(one, 0)
    assert level(other) == 4
    one.delete(PLANT)
    is_problem(other.get(PLANT), 404)
    is_problem(other.post(f"{PLANT}/observations", json=rows()), 404)
    one.post("/v1/models", json=specification("plant", channels={"flow": "Gaussian"}))
    row = [{"hour": 1.0, "flow": 2.0}]
    assert other.post(f"{PLANT}/observations", json=row).status_code == 200
    assert other.get(PLANT).json()["channels"] == {"flow": "Gaussian"}
    assert len(other.get(f"{PLANT}/picture").json()["rows"]) == 1


def test_two_services_of_one_store_share_a_fleet(both):
    one, other = both
    one.post("/v1/fleets", json=specification("pumps"))
    send_keyed(one, 0)
    send_keyed(other, 1)
    send_keyed(one, 2)
    assert send_keyed(other, 2)["repeated"]
    for service in both:
        assert [level(service, f"/v1/fleets/pumps/{key}") for key in KEYS] == [12, 12, 12]


def test_two_services_that_follow_the_same_feed_learn_it_once(tmp_path):
    path, store = tmp_path / "readings.jsonl", tmp_path / "models.db"
    path.write_text(lines(rows(10)))
    sources = (f"file://{path}?model=plant",)
    with serving(store, sources=sources) as one, serving(store, sources=sources) as other:
        one.post("/v1/models", json=specification("plant"))
        assert wait_for(other, 10) == 10
        for number in range(5):
            with path.open("a") as file:
                file.write(lines(rows(4, begin=10 + 4 * number)))
            assert wait_for(one, 14 + 4 * number) == 14 + 4 * number
        time.sleep(0.5)
        assert level(other) == 30


# -- names of columns ----------------------------------------------------------------------------

LONE = {"channels": {"level": "Gaussian"}, "model": {"learning": False}}


@pytest.mark.parametrize("changes", [LONE, {}, {**LONE, "stream": {"samples": True}}])
@pytest.mark.parametrize("row", [{"hour": 1.0, "levels": 2.0}, {"hours": 1.0, "level": 2.0}])
def test_a_misspelt_column_is_refused(service, changes, row):
    service.post("/v1/models", json=specification("plant", **changes))
    service.post("/v1/fleets", json=specification("pumps", **changes))
    wrong = next(name for name in row if name not in ("hour", "level"))
    fine = {"hour": 0.0, "level": 1.0}
    key = {"Idempotency-Key": "one"}
    requests = [
        (PLANT, f"{PLANT}/observations", {}),
        ("/v1/fleets/pumps/north", "/v1/fleets/pumps/north/observations", {}),
        ("/v1/fleets/pumps/north", "/v1/fleets/pumps/observations?key=pump", {"pump": "north"}),
    ]
    for begun in (False, True):
        for model, where, more in requests:
            if begun:
                fed = service.post(where, json=[{**fine, **more}])
                assert fed.status_code == 200, fed.text
                before = level(service, model)
            document = is_problem(service.post(where, json=[{**row, **more}], headers=key), 422)
            assert document["got"] == repr(wrong)
            assert "'hour'" in document["expected"]
            assert "'level'" in document["expected"]
            if begun:
                assert level(service, model) == before
    with Client(str(service.base_url)) as client:
        for data in ([row], pd.DataFrame([row])):
            with pytest.raises(ServiceError, match=f"got '{wrong}'"):
                client.model("plant").update(data)
            with pytest.raises(ServiceError, match=f"got '{wrong}'"):
                client.fleet("pumps").update(with_pump(data), key="pump")


def with_pump(data):
    if isinstance(data, list):
        return [{**row, "pump": "north"} for row in data]
    return data.assign(pump="north")


def test_columns_of_several_numbers_and_of_long_tables(service):
    channels = {"visits": {"kind": "Poisson", "exposure": True}}
    body = specification("plant", channels=channels, model={"learning": False})
    assert service.post("/v1/models", json=body).status_code == 201
    for names in (("visits", "visits_exposure"), ("count", "exposure")):
        row = {"hour": 1.0, names[0]: 2, names[1]: 1.5}
        assert service.post(f"{PLANT}/observations", json=[row]).status_code == 200
    row = {"hour": 1.0, "visits": 2, "visits_exposures": 1.5}
    document = is_problem(service.post(f"{PLANT}/observations", json=[row]), 422)
    assert document["got"] == "'visits_exposures'"
    data = {"inputs": "hour", "channel": "what", "value": "y"}
    service.post("/v1/models", json=specification("long", data=data))
    row = {"hour": 1.0, "what": "level", "y": 2.0, "unit": "m"}
    assert service.post("/v1/models/long/observations", json=[row]).status_code == 200
    is_problem(service.post("/v1/models/long/observations", json=[{**row, "what": "levels"}]), 422)


# -- how long answers are kept -------------------------------------------------------------------


def kept(service):
    with service.engine.store._backend.reading() as session:
        return session.run("SELECT count(*) FROM streamgp_answers")[0][0]


def test_answers_expire(tmp_path, monkeypatch):
    keep = datetime.timedelta(hours=1)
    with serving(tmp_path / "models.db", keep=keep) as service:
        service.post("/v1/models", json=specification("plant"))
        service.post("/v1/fleets", json=specification("pumps"))
        for number in range(3):
            send(service, number)
        send_keyed(service, 0)
        assert kept(service) == 3 + 1 + len(KEYS)
    later = time.time() + 2 * keep.total_seconds()
    with serving(tmp_path / "models.db", keep=keep) as service:
        assert send(service, 0)
        assert kept(service) == 3 + 1 + len(KEYS)
    monkeypatch.setattr(time, "time", lambda: later)
    with serving(tmp_path / "models.db", keep=keep) as service:
        assert [send(service, number) for number in (2, 2)] == [False, True]
        assert kept(service) == 1


def test_answers_expire_while_the_service_runs(tmp_path):
    with serving(tmp_path / "models.db", keep=datetime.timedelta(seconds=0.05)) as service:
        service.post("/v1/models", json=specification("plant"))
        for number in range(5):
            send(service, number)
            time.sleep(0.1)
        assert kept(service) == 1


@pytest.mark.parametrize("text", ["7", "1M", "-1D", "0D", "soon", f"{10**12}W"])
def test_how_long_answers_are_kept_is_a_duration(tmp_path, text):
    store = str(tmp_path / "models.db")
    with pytest.raises(SystemExit, match="a positive duration"):
        main(["serve", "--store", store, "--no-tokens", f"--keep-answers={text}"])


def test_the_command_says_how_long_answers_are_kept(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(serve, "run", lambda settings, listening: asked.append(settings))
    for words in ([], ["--keep-answers", "36h"]):
        main(["serve", "--store", str(tmp_path / "models.db"), "--no-tokens", *words])
    assert [s.keep_answers for s in asked] == [
        datetime.timedelta(days=7),
        datetime.timedelta(hours=36),
    ]


# -- clocks --------------------------------------------------------------------------------------


def silences(service):
    text = service.get("/metrics").text
    (line,) = (t for t in text.splitlines() if t.startswith("streamgp_model_seconds_since_last{"))
    return service.get(PLANT).json()["seconds_since_last"], float(line.split()[-1])


def test_a_clock_that_is_set_back_gives_no_negative_silence(tmp_path, monkeypatch):
    usual = time.time
    with serving(tmp_path / "models.db") as service:
        service.post("/v1/models", json=specification("plant"))
        send(service, 0)
        with monkeypatch.context() as clock:
            clock.setattr(time, "time", lambda: usual() - 3600)
            begin = silences(service)
            assert all(0 <= silence < 600 for silence in begin)
            time.sleep(0.05)
            assert all(b > a for a, b in zip(begin, silences(service), strict=True))
    monkeypatch.setattr(time, "time", lambda: usual() - 3600)
    with serving(tmp_path / "models.db") as service:
        assert service.get(PLANT).status_code == 200  # it is loaded
        assert all(0 <= silence < 600 for silence in silences(service))
    monkeypatch.setattr(time, "time", lambda: usual() + 3600)
    with serving(tmp_path / "models.db") as service:
        assert service.get(PLANT).json()["seconds_since_last"] > 3500
