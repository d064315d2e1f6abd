"""Many or large requests: what they may ask for, and that others are answered meanwhile."""

import asyncio
import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import streamgp as sgp
from streamgp.service import wire
from tests.service.running import rows, serving
from tests.service.test_routes import is_problem, local, made

MANY = 3000  # inputs: a long prediction


def tensor(values):
    return {"name": "hour", "shape": [len(values)], "datatype": "FP64", "data": values}


def inputs(count):
    return np.linspace(0, 2, count).tolist()


@pytest.fixture
def writers(monkeypatch):
    """Of all JSON that is written: how large it is, and whether the event loop wrote it."""
    found = []

    def watched(write):
        def watching(*given, **options):
            text = write(*given, **options)
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                found.append((len(text), False))
            else:
                found.append((len(text), True))
            return text

        return watching

    monkeypatch.setattr(json, "dumps", watched(json.dumps))
    if hasattr(wire, "to_json"):
        monkeypatch.setattr(wire, "to_json", watched(wire.to_json))
    return found


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/models/plant/predict", {"inputs": inputs(MANY), "quantiles": [0.1, 0.9]}),
        ("/v1/models/plant/predict", {"ahead": 50, "every": 0.5, "components": True}),
        ("/v2/models/plant/infer", {"inputs": [tensor(inputs(MANY))]}),
        ("/v1/models/plant/picture?points=500", None),
        ("/v1/models/plant/history", None),
    ],
)
def test_answers_are_written_once_and_not_by_the_event_loop(service, writers, path, asked):
    made(service, "plant", rows())
    body = None if asked is None else json.dumps(asked).encode()
    kind = {"Content-Type": "application/json"}
    writers.clear()
    method = "GET" if body is None else "POST"
    answer = service.request(method, path, content=body, headers=kind)
    assert answer.status_code == 200, answer.text
    own = [by_loop for size, by_loop in writers if size >= 0.5 * len(answer.content)]
    assert own == [False]


def test_long_predictions_are_those_of_the_same_model_here(service):
    made(service, "plant", rows())
    asked = {"inputs": inputs(MANY), "quantiles": [0.25]}
    told = service.post("/v1/models/plant/predict", json=asked).json()["channels"]
    wanted = local(rows()).predict(inputs(MANY), "level")
    np.testing.assert_array_equal(told["level"]["mean"], wanted.mean)
    np.testing.assert_array_equal(told["level"]["quantiles"]["0.25"], wanted.quantile(0.25))
    tensors = {"inputs": [tensor(inputs(MANY))], "outputs": [{"name": "level_std"}]}
    (told,) = service.post("/v2/models/plant/infer", json=tensors).json()["outputs"]
    np.testing.assert_array_equal(told["data"], wanted.std)


def test_numbers_that_json_lacks_are_null():
    told = wire.written({"array": np.array([1.0, np.nan, np.inf]), "number": -np.inf})
    assert json.loads(told) == {"array": [1.0, None, None], "number": None}


@contextlib.contextmanager
def held(monkeypatch):
    """Long predictions do not end before the block does."""
    go, usual = threading.Event(), sgp.ContinualGP.predict

    def predict(model, x, *more):
        if len(x) >= MANY:
            assert go.wait(60)
        return usual(model, x, *more)

    monkeypatch.setattr(sgp.ContinualGP, "predict", predict)
    try:
        yield
    finally:
        go.set()


def test_health_and_short_predictions_do_not_wait_for_long_ones(service, monkeypatch):
    made(service, "plant", rows())
    address, readers = str(service.base_url), 44

    def read(_):
        asked = {"inputs": inputs(MANY)}
        return httpx.post(f"{address}/v1/models/plant/predict", json=asked, timeout=60).status_code

    with ThreadPoolExecutor(readers) as pool:
        with held(monkeypatch):
            waiting = [pool.submit(read, i) for i in range(readers)]
            for path in ("/healthz", "/readyz", "/v1/models/plant", "/metrics"):
                assert service.get(path).status_code == 200
            short = service.post("/v1/models/plant/predict", json={"inputs": [1.0]})
            assert short.status_code == 200
            assert not any(each.done() for each in waiting)
        assert {each.result() for each in waiting} == {200}


def test_a_prediction_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    with serving(tmp_path / "models.db", predict_seconds=0.2) as service, held(monkeypatch):
        made(service, "plant", rows())
        answer = service.post("/v1/models/plant/predict", json={"inputs": inputs(MANY)})
        is_problem(answer, 503)
        assert answer.headers["retry-after"]


# -- how much may be asked for ---------------------------------------------------------------------

ANSWER = 500


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A service whose answers are small."""
    where = tmp_path_factory.mktemp("small") / "models.db"
    with serving(where, answer=ANSWER, predictions=6000) as client:
        made(client, "plant", rows())
        yield client


def test_the_size_of_an_answer_is_bounded_by_inputs_times_columns(small):
    where, level = "/v1/models/plant/predict", {"channels": ["level"]}
    columns = 5  # the input, mean, std, lower, upper
    most = ANSWER // columns
    assert small.post(where, json={**level, "inputs": inputs(most)}).status_code == 200
    for asked in (
        {**level, "inputs": inputs(most + 1)},
        {**level, "inputs": inputs(most), "quantiles": [0.5]},
        {**level, "inputs": inputs(most), "components": True},
        {"inputs": inputs(most)},
        {**level, "ahead": most + 1, "every": 0.1},
        {**level, "inputs": inputs(MANY)},
    ):
        document = is_problem(small.post(where, json=asked), 413)
        assert f"at most {ANSWER} numbers" in document["expected"]
        assert "fewer inputs" in document["remedy"]
    is_problem(small.get("/v1/models/plant/picture?points=400"), 413)
    assert small.get("/v1/models/plant/picture?points=50").status_code == 200


def test_the_size_of_an_answer_of_the_protocol_is_bounded_too(small):
    where = "/v2/models/plant/infer"
    mean = [{"name": "level_mean"}]
    fine = {"inputs": [tensor(inputs(ANSWER))], "outputs": mean}
    assert small.post(where, json=fine).status_code == 200
    for values, outputs in ((inputs(ANSWER), []), (inputs(ANSWER + 1), mean), (inputs(MANY), mean)):
        answer = small.post(where, json={"inputs": [tensor(values)], "outputs": outputs})
        assert answer.status_code == 413
        assert f"at most {ANSWER} numbers" in answer.json()["error"]


@pytest.mark.parametrize("asked", [{"inputs": [0.0] * 3001}, {"ahead": 3001, "every": 1}])
def test_inputs_times_channels_are_bounded(small, asked):
    document = is_problem(small.post("/v1/models/plant/predict", json=asked), 413)
    assert "at most 6000 inputs times channels" in document["expected"]


# -- listeners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/events", "/v1/models/plant/events"])
def test_no_more_clients_listen_than_may_however_many_ask_at_once(service, path):
    made(service, "plant")
    port, asking, most = service.base_url.port, 300, 100

    async def status(stream):
        return int((await stream[0].readline()).split()[1])

    async def ask():
        streams = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", port) for _ in range(asking))
        )
        for _, writer in streams:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        try:
            async with asyncio.timeout(60):
                return await asyncio.gather(*map(status, streams))
        finally:
            for _, writer in streams:
                writer.close()

    found = asyncio.run(ask())
    assert found.count(200) == most
    assert found.count(429) == asking - most

    async def again():
        async with asyncio.timeout(60):
            while True:  # the service sees a little later that they have gone
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                code = await status((reader, writer))
                writer.close()
                if code == 200:
                    return
                await asyncio.sleep(0.05)

    asyncio.run(again())
