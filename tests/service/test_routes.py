"""Every route of the service: what it answers, and that it is what the model itself says."""

import io
import json
import re
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamgp as sgp
from streamgp.configuration import from_tables
from tests.service.running import SPECIFICATION, rows, serving, specification

INPUTS = [0.1, 1.0, 2.6, 4.0]


def local(*batches):
    """The same model in this process."""
    model = from_tables(SPECIFICATION).build()
    for batch in batches:
        model.update(pd.DataFrame(batch), inputs="hour")
    return model


def made(service, name, *batches):
    assert service.post("/v1/models", json=specification(name)).status_code == 201
    for batch in batches:
        assert service.post(f"/v1/models/{name}/observations", json=batch).status_code == 200


def is_problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == status
    assert document["title"]
    return document


def refused_by_protocol(answer, status):
    """The form that errors have in the Open Inference Protocol."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"error"}
    return answer.json()["error"]


def in_ndjson(batch):
    return "\n".join(json.dumps(row) for row in batch).encode(), "application/x-ndjson"


def in_csv(batch):
    return pd.DataFrame(batch).to_csv(index=False).encode(), "text/csv"


def in_arrow(batch):
    table, sink = pa.Table.from_pandas(pd.DataFrame(batch)), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue(), "application/vnd.apache.arrow.stream"


def in_json(batch):
    return json.dumps({"rows": batch}).encode(), "application/json"


@pytest.mark.parametrize("form", [in_json, in_ndjson, in_csv, in_arrow])
def test_predictions_are_those_of_the_same_model_here(shared, form):
    name = form.__name__
    made(shared, name)
    for begin in (0, 10):
        body, kind = form(rows(begin=begin))
        answer = shared.post(
            f"/v1/models/{name}/observations", content=body, headers={"Content-Type": kind}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["observations"] == {"level": 10, "alarm": 10}
    asked = {"inputs": INPUTS, "level": 0.8, "quantiles": [0.25]}
    found = shared.post(f"/v1/models/{name}/predict", json=asked).json()
    wanted = local(rows(), rows(begin=10))
    level = wanted.predict(INPUTS, "level")
    lower, upper = level.interval(0.8)
    told = found["channels"]["level"]
    np.testing.assert_array_equal(told["mean"], level.mean)
    np.testing.assert_array_equal(told["lower"], lower)
    np.testing.assert_array_equal(told["upper"], upper)
    np.testing.assert_array_equal(told["quantiles"]["0.25"], level.quantile(0.25))
    alarm = wanted.predict(INPUTS, "alarm")
    yes = found["channels"]["alarm"][str(alarm.classes[1])]
    np.testing.assert_array_equal(yes, alarm.probabilities[:, 1])
    assert found["inputs"] == {"hour": INPUTS}


def test_a_model_comes_and_goes(service):
    answer = service.post("/v1/models", json=specification("plant"))
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/models/plant"
    is_problem(service.post("/v1/models", json=specification("plant")), 409)
    assert service.get("/v1/models").json()["total"] == 1
    described = service.get("/v1/models/plant").json()
    assert described["channels"] == {"level": "Gaussian", "alarm": "Bernoulli"}
    assert service.delete("/v1/models/plant").status_code == 204
    is_problem(service.get("/v1/models/plant"), 404)
    is_problem(service.delete("/v1/models/plant"), 404)
    is_problem(service.post("/v1/models/plant/observations", json=rows()), 404)
    assert service.get("/v1/models").json() == {"models": [], "total": 0}


def test_a_retry_gets_the_first_answer_and_changes_nothing(service):
    made(service, "plant")
    where, key = "/v1/models/plant/observations", {"Idempotency-Key": "batch-1"}
    first = service.post(where, json=rows(), headers=key).json()
    again = service.post(where, json=rows(), headers=key).json()
    assert (first.pop("repeated"), again.pop("repeated")) == (False, True)
    assert again == first
    assert service.get("/v1/models/plant").json()["observations"] == {"level": 10, "alarm": 10}
    is_problem(service.post(where, json=rows(begin=10), headers=key), 422)
    other = service.post(where, json=rows(begin=10), headers={"Idempotency-Key": "batch-2"})
    assert other.json()["update"] == 2


def test_a_retry_after_a_restart_changes_nothing(tmp_path):
    key = {"Idempotency-Key": "batch-1"}
    with serving(tmp_path / "models.db") as service:
        made(service, "plant")
        first = service.post("/v1/models/plant/observations", json=rows(), headers=key).json()
        file = service.get("/v1/models/plant/file").content
    with serving(tmp_path / "models.db") as service:
        again = service.post("/v1/models/plant/observations", json=rows(), headers=key).json()
        assert {**again, "repeated": False} == first
        assert service.get("/v1/models/plant/file").content == file


def test_the_file_is_the_model_and_comes_back(service):
    made(service, "plant", rows())
    answer = service.get("/v1/models/plant/file")
    assert answer.headers["content-disposition"] == 'attachment; filename="plant.sgp"'
    model = sgp.from_bytes(answer.content)
    wanted = local(rows())
    np.testing.assert_array_equal(
        model.predict(INPUTS, "level").mean, wanted.predict(INPUTS, "level").mean
    )
    assert service.put("/v1/models/copy/file", content=answer.content).status_code == 201
    assert service.get("/v1/models/copy/file").content == answer.content
    is_problem(service.put("/v1/models/copy/file", content=answer.content), 409)
    more = service.post("/v1/models/copy/observations", json=rows(begin=10))
    assert more.json()["update"] == 2


def test_a_model_that_was_made_elsewhere_can_be_fed(service):
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(pd.DataFrame({"t": [0.0, 1.0], "y": [1.0, 2.0]}), inputs="t")
    assert service.put("/v1/models/own/file", content=model.to_bytes()).status_code == 201
    answer = service.post("/v1/models/own/observations", json=[{"t": 2.0, "y": 3.0}])
    assert answer.json()["observations"] == {"y": 1}


def test_report_history_hyperparameters_and_alarms(service):
    batches = [rows(count=4, begin=4 * i) for i in range(12)]
    made(service, "plant", *batches, [{"hour": 12.0, "level": 40.0}])
    report = service.get("/v1/models/plant/report").json()
    assert report["update"] == 13
    assert report["surprise"]["level"] > 4
    history = service.get("/v1/models/plant/history").json()
    assert history["columns"]["update"] == list(range(1, 14))
    assert history["columns"]["observations"][-2:] == [96, 97]
    assert history["columns"]["nlpd:level"][0] is None  # nothing was predicted of the first batch
    assert history["columns"]["nlpd:level"][1] is not None
    assert history["alarms"][-1]["channel"] == "level"
    numbers = service.get("/v1/models/plant/hyperparameters").json()["hyperparameters"]
    assert numbers["latents"][0]["lengthscale"] == pytest.approx(3.0)


def test_the_picture_has_a_band_the_rows_and_a_forecast(service):
    made(service, "plant", rows(count=20))
    picture = service.get("/v1/models/plant/picture?points=50&level=0.5").json()
    assert len(picture["x"]) == len(picture["channels"]["level"]["mean"]) == 50
    assert picture["latest"] == 4.75 < picture["x"][-1]
    assert {row["channel"] for row in picture["rows"]} == {"level", "alarm"}
    recent = service.get("/v1/models/plant/picture?points=5&last=1").json()
    assert recent["x"][0] == 3.75
    model = local(rows(count=20))
    wanted = model.predict(picture["x"], "level").interval(0.5)[0]
    np.testing.assert_allclose(picture["channels"]["level"]["lower"], wanted)


def test_components_add_up_to_what_is_predicted(service):
    made(service, "plant", rows(count=20))
    asked = {"inputs": INPUTS, "channels": ["level"], "components": True}
    found = service.post("/v1/models/plant/predict", json=asked).json()["channels"]["level"]
    total = np.sum([part["mean"] for part in found["components"].values()], axis=0)
    np.testing.assert_allclose(total, found["mean"])
    picture = service.get("/v1/models/plant/picture?points=9&components=true").json()
    drawn = picture["channels"]["level"]
    np.testing.assert_allclose(np.sum([*drawn["components"].values()], axis=0), drawn["mean"])


def test_times_come_and_go_as_text(service):
    spec = specification("clock", channels={"y": "Gaussian"}, data={"inputs": "time"})
    del spec["model"]
    service.post("/v1/models", json=spec)
    batch = [{"time": f"2024-05-01T{h:02}:00:00+00:00", "y": float(h)} for h in range(12)]
    assert service.post("/v1/models/clock/observations", json=batch).status_code == 200
    asked = {"ahead": 2, "every": "1h"}
    found = service.post("/v1/models/clock/predict", json=asked).json()
    assert found["inputs"]["time"] == ["2024-05-01T12:00:00+00:00", "2024-05-01T13:00:00+00:00"]
    assert service.get("/v1/models/clock").json()["latest"] == "2024-05-01T11:00:00+00:00"


def test_long_rows_and_single_samples(service):
    tables = {"data": {"inputs": "hour", "channel": "sensor", "value": "reading"}}
    spec = specification("long", **tables, stream={"samples": True})
    assert service.post("/v1/models", json=spec).status_code == 201
    batch = [
        {"hour": 1.0, "sensor": "level", "reading": 2.0},
        {"hour": 1.5, "sensor": "alarm", "reading": 1},
    ]
    answer = service.post("/v1/models/long/observations", json=batch)
    assert answer.json()["observations"] == {"level": 1, "alarm": 1}
    assert answer.json()["update"] == 2
    picture = service.get("/v1/models/long/picture").json()
    assert {(row["channel"], row["y"]) for row in picture["rows"]} == {
        ("level", 2.0),
        ("alarm", 1.0),
    }


def test_models_of_a_fleet_share_a_specification_and_nothing_else(service):
    assert service.post("/v1/fleets", json=specification("pumps")).status_code == 201
    is_problem(service.post("/v1/fleets/none/a/observations", json=rows()), 404)
    for key, batch in (("a", rows()), ("b", rows(seed=1))):
        answer = service.post(f"/v1/fleets/pumps/{key}/observations", json=batch)
        assert answer.json()["update"] == 1
    asked = {"inputs": INPUTS, "channels": ["level"]}
    for key, batch in (("a", rows()), ("b", rows(seed=1))):
        found = service.post(f"/v1/fleets/pumps/{key}/predict", json=asked).json()
        wanted = local(batch).predict(INPUTS, "level").mean
        np.testing.assert_array_equal(found["channels"]["level"]["mean"], wanted)
    listed = service.get("/v1/fleets/pumps").json()
    assert [each["name"] for each in listed["models"]] == ["a", "b"]
    assert service.get("/v1/models").json()["total"] == 0
    assert service.delete("/v1/fleets/pumps/a").status_code == 204
    is_problem(service.delete("/v1/fleets/pumps"), 409)
    assert service.delete("/v1/fleets/pumps?members=true").status_code == 204
    is_problem(service.get("/v1/fleets/pumps"), 404)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"channels": {}}, "at least one channel"),
        ({"channels": {"y": "Gauss"}}, "of a kind among"),
        ({"channels": {"y": {"kind": "Gaussian", "noise": -1}}}, "positive"),
        ({"model": {"latents": 10**6}}, "at most 16 latent functions"),
        ({"model": {"inducing": {"kind": "Adaptive", "budget": 10**7}}}, "at most 2048"),
        ({"model": {"keep": 10**6}}, "at most 4096 rows"),
        ({"model": {"keep": "all"}}, "a number of rows"),
        ({"model": {"inducing": {"kind": "Adaptive", "tolerance": "os.system"}}}, "the settings"),
        ({"model": {"latents": [{"kind": "FunctionKernel", "function": "x"}]}}, "of a kind among"),
        ({"model": {"carry": "x"}}, "settings of [model] among"),
        ({"data": {"inputs": ["../../etc/passwd", 3]}}, "names of columns"),
        ({"data": {}}, "settings of [data]"),
        ({"stream": {"samples": "yes"}}, "true or false"),
    ],
)
def test_a_bad_specification_is_refused_in_words(shared, change, said):
    document = is_problem(shared.post("/v1/models", json=specification("bad", **change)), 422)
    assert said in document["detail"]
    assert document["expected"]
    assert document["got"]
    assert document["remedy"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"[{]", "application/json", 422),
        (b'[{"hour": NaN, "level": 1}]', "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b"[1, 2]", "application/json", 422),
        (b"[]", "application/json", 422),
        (b'[{"hour": 1, "level": [1]}]', "application/json", 422),
        (b'[{"hour": 1, "other": 1}]', "application/json", 422),
        (b'[{"level": 1}]', "application/json", 422),
        (b'[{"hour": 1e200, "level": 1}]', "application/json", 422),
        (b'[{"hour": %s, "level": 1}]' % (b"9" * 400), "application/json", 422),
        (b'{"hour": 1}\n{"', "application/x-ndjson", 422),
        (b"", "text/csv", 422),
        (b'hour,level\n"1', "text/csv", 422),
        (b"\xff\xfe", "text/csv", 422),
        (b"ARROW1\0\0", "application/vnd.apache.arrow.stream", 422),
        (b"<a/>", "application/xml", 415),
        (b"[]", "", 415),
    ],
)
def test_bad_observations_are_refused_and_the_model_stays(shared, body, kind, status):
    if shared.get("/v1/models/still").status_code == 404:
        made(shared, "still", rows())
    file = shared.get("/v1/models/still/file").content
    answer = shared.post(
        "/v1/models/still/observations", content=body, headers={"Content-Type": kind}
    )
    is_problem(answer, status)
    assert shared.get("/v1/models/still/file").content == file


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"inputs": [1.0], "ahead": 1, "every": 1},
        {"ahead": 3},
        {"ahead": "1h", "every": "1h"},
        {"ahead": 10**9, "every": 1},
        {"inputs": ["x"]},
        {"inputs": [True]},
        {"inputs": [[False]]},
        {"inputs": [1.0], "level": "0.9"},
        {"inputs": [[1.0, 2.0]]},
        {"inputs": {"minute": [1.0]}},
        {"inputs": [1.0], "channels": ["other"]},
        {"inputs": [1.0], "channels": []},
        {"inputs": [1.0], "level": 1.5},
        {"inputs": [1.0], "surprise": True},
    ],
)
def test_bad_predictions_are_refused(shared, asked):
    if shared.get("/v1/models/asked").status_code == 404:
        made(shared, "asked", rows())
    is_problem(shared.post("/v1/models/asked/predict", json=asked), 422)


def test_a_model_without_data_says_so(service):
    made(service, "young")
    is_problem(service.post("/v1/models/young/predict", json={"inputs": [1.0]}), 422)
    is_problem(service.get("/v1/models/young/report"), 404)
    assert "without" in service.get("/v2/models/young/ready").json()["error"]
    assert service.get("/v1/models/young/picture").json()["x"] == []
    assert service.get("/v1/models/young/history").json()["columns"] == {}


def test_metrics_tell_of_models_and_requests(service):
    made(service, "plant", rows(), rows(begin=10))
    service.post("/v1/models/plant/predict", json={"inputs": [1.0]})
    text = service.get("/metrics").text
    for line in (
        'streamgp_model_observations{model="plant"} 40.0',
        'streamgp_model_coverage{channel="level",model="plant"}',
        'streamgp_model_nlpd{channel="level",model="plant"}',
        'streamgp_model_surprise{channel="alarm",model="plant"}',
        'streamgp_model_seconds_since_last{model="plant"}',
        "streamgp_observations_total 40.0",
        "streamgp_update_seconds_count 2.0",
        "streamgp_predict_seconds_count 1.0",
        'streamgp_requests_total{method="POST",route="/v1/models/{name}/predict",status="200"} 1.0',
    ):
        assert line in text, line


def test_the_example_dashboard_shows_metrics_that_exist(service):
    made(service, "plant", rows(), rows(begin=10))
    service.post("/v1/models/plant/predict", json={"inputs": [1.0]})
    text = service.get("/metrics").text
    page = Path(__file__).parents[2] / "docs" / "grafana.json"
    named = set(re.findall(r"streamgp_[a-z_]+", page.read_text()))
    assert len(named) > 10
    for name in named:
        assert f"\n{name}" in text, name


def test_events_tell_of_every_change(service):
    made(service, "plant")
    heard, ready = [], threading.Event()

    def listen():
        with service.stream("GET", "/v1/models/plant/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    heard.append(line.removeprefix("event: "))
                    ready.set()
                if line.startswith("data: ") and heard[-1] == "updated":
                    heard.append(json.loads(line.removeprefix("data: ")))
                    return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert ready.wait(10)
    made(service, "other", rows())  # of which the listener hears nothing
    service.post("/v1/models/plant/observations", json=rows())
    thread.join(10)
    assert heard[:2] == ["hello", "updated"]
    assert heard[2]["name"] == "plant"
    assert heard[2]["report"]["update"] == 1
    assert len(heard[2]["rows"]) == 20


def test_health_and_request_ids(service):
    assert service.get("/healthz").json()["status"] == "alive"
    assert service.get("/readyz").json()["status"] == "ready"
    answer = service.get("/healthz", headers={"X-Request-Id": "abc-1"})
    assert answer.headers["x-request-id"] == "abc-1"
    is_problem(service.get("/nowhere"), 404)


@pytest.mark.parametrize(
    ("method", "path", "methods"),
    [
        ("PUT", "/healthz", {"GET"}),
        ("PUT", "/v1/models", {"GET", "POST"}),
        ("OPTIONS", "/v1/fleets", {"GET", "POST"}),
        ("PATCH", "/v1/models/plant", {"GET", "DELETE"}),
        ("POST", "/v1/models/plant/file", {"GET", "PUT"}),
        ("DELETE", "/v1/models/plant/predict", {"POST"}),
        ("PUT", "/", {"GET"}),
    ],
)
def test_a_method_that_a_path_lacks_is_answered_with_those_it_has(shared, method, path, methods):
    answer = shared.request(method, path)
    is_problem(answer, 405)
    assert {each.strip() for each in answer.headers["allow"].split(",")} == methods


HALF = "\\ud800"  # of a character, as JSON may escape it
RAW = b"\xed\xa0\x80"  # the same, as no UTF-8 has it


@pytest.mark.parametrize("half", [HALF.encode(), RAW])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/models/half/observations", '[{"hour": 1, "level": 2, "%s": 1}]'),
        ("/v1/models/half/observations", '[{"hour": 1, "%s": 2}]'),
        ("/v1/models/half/observations", '[{"hour": "%s", "level": 2}]'),
        ("/v1/fleets/half/observations?key=pump", '[{"hour": 1, "level": 2, "pump": "%s"}]'),
        ("/v1/models/half/predict", '{"inputs": {"%s": [1]}}'),
        ("/v1/models/half/predict", '{"inputs": ["%s"]}'),
        ("/v1/models/half/predict", '{"inputs": [1], "channels": ["%s"]}'),
        ("/v1/models/half/predict", '{"inputs": [1], "%s": 1}'),
        ("/v1/models", '{"name": "%s", "channels": {"y": "Gaussian"}, "data": {"inputs": "t"}}'),
        ("/v1/models", '{"name": "x", "channels": {"%s": "Gaussian"}, "data": {"inputs": "t"}}'),
        ("/v1/models", '{"name": "x", "channels": {"y": "Gaussian"}, "data": {"inputs": "%s"}}'),
        ("/v1/fleets", '{"name": "x", "channels": {"y": "%s"}, "data": {"inputs": "t"}}'),
        ("/v2/models/half/infer", '{"id": "%s", "inputs": []}'),
        (
            "/v2/models/half/infer",
            '{"inputs": [{"name": "%s", "datatype": "FP64", "shape": [1], "data": [1]}]}',
        ),
    ],
)
def test_half_a_character_anywhere_in_json_is_refused(shared, path, body, half):
    if shared.get("/v1/models/half").status_code == 404:
        made(shared, "half", rows())
        assert shared.post("/v1/fleets", json=specification("half")).status_code == 201
    kind = {"Content-Type": "application/json"}
    answer = shared.post(path, content=body.encode().replace(b"%s", half), headers=kind)
    assert answer.status_code == 422, answer.text
    assert shared.get("/v1/models/x").status_code == 404


def test_whole_characters_may_be_written_in_halves(service):
    names = {"channels": {"\U0001f600": "Gaussian"}, "data": {"inputs": "hour"}}
    assert service.post("/v1/models", json={"name": "smile", **names}).status_code == 201
    body = b'[{"hour": 1, "\\ud83d\\ude00": 2}]'
    kind = {"Content-Type": "application/json"}
    answer = service.post("/v1/models/smile/observations", content=body, headers=kind)
    assert answer.json()["observations"] == {"\U0001f600": 1}
