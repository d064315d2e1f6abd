"""Clients: the verbs of a model, over HTTP, with retries."""

import asyncio
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamgp as sgp
from streamgp.client import AsyncClient, Client, ServiceError
from tests.service.running import SPECIFICATION, rows, serving
from tests.service.test_routes import INPUTS, local

TABLES = {"data": SPECIFICATION["data"], "model": SPECIFICATION["model"]}


@pytest.fixture
def client(service):
    with Client(str(service.base_url)) as client:
        yield client


@pytest.mark.parametrize("frame", [list, pd.DataFrame, pl.DataFrame])
def test_frames_in_and_out(client, frame):
    model = client.create("plant", SPECIFICATION["channels"], **TABLES)
    report = model.update(frame(rows()))
    assert report.update == 1
    assert report["observations"] == {"level": 10, "alarm": 10}
    wanted = local(rows()).predict(INPUTS, "level")
    level = model.predict(INPUTS, "level", level=0.8, quantiles=[0.5])
    np.testing.assert_array_equal(level.mean, wanted.mean)
    np.testing.assert_array_equal(level.interval[1], wanted.interval(0.8)[1])
    table = model.predict(pd.DataFrame({"hour": INPUTS}), "level").to_frame()
    assert list(table) == ["hour", "mean", "std", "lower", "upper"]
    parts = model.predict(INPUTS, "level", components=True).components
    np.testing.assert_allclose(np.sum([p["mean"] for p in parts.values()], axis=0), wanted.mean)
    both = model.predict(np.array(INPUTS))
    assert set(both) == {"level", "alarm"}
    assert len(model.forecast(3, every=0.25, channel="level")) == 3


def test_times_in_frames(client):
    model = client.create("clock", {"y": "Gaussian"}, data={"inputs": "time"})
    times = pd.date_range("2024-05-01", periods=24, freq="h", tz="Europe/Madrid")
    frame = pd.DataFrame({"time": times, "y": np.sin(np.arange(24) / 4)})
    model.update(frame)
    here = sgp.ContinualGP({"y": sgp.Gaussian()})
    here.update(frame, inputs="time")
    table = model.predict(frame[["time"]], "y").to_frame()
    np.testing.assert_allclose(table["mean"], here.predict(frame[["time"]], "y").mean)
    assert table["time"].iloc[0] == times[0]


def test_other_verbs(client, tmp_path):
    model = client.create("plant", SPECIFICATION["channels"], **TABLES)
    model.update(rows())
    assert client.models() == ["plant"]
    assert model.describe()["updates"] == 1
    assert model.report()["update"] == 1
    assert model.history()["update"] == [1]
    assert model.hyperparameters["latents"][0]["kind"] == "RBF"
    model.save(tmp_path / "plant.sgp")
    assert sgp.load(tmp_path / "plant.sgp").observations == model.download().observations
    copy = client.upload("copy", model.download())
    assert copy.describe()["updates"] == 1
    model.delete()
    assert client.models() == ["copy"]
    with pytest.raises(ServiceError, match="a model that exists") as refused:
        model.describe()
    assert refused.value.status == 404
    with pytest.raises(ServiceError, match="channels"):
        copy.update([{"hour": 1.0, "other": 1.0}])


def test_a_member_of_a_fleet(client, service):
    service.post("/v1/fleets", json={"name": "pumps", **SPECIFICATION})
    member = client.member("pumps", "a")
    assert member.update(rows()).update == 1
    assert len(member.predict(INPUTS, "level")) == 4


def test_many_keys_of_a_fleet(client):
    fleet = client.create_fleet("pumps", SPECIFICATION["channels"], population=False, **TABLES)
    frame = pd.DataFrame([{"pump": key, **row} for key in ("a", "b") for row in rows()])
    report = fleet.update(frame, key="pump", request="one")
    assert (report.updated, report.errors, report.begun) == (2, {}, ["a", "b"])
    assert fleet.update(frame, key="pump", request="one").repeated
    assert fleet.keys() == ["a", "b"]
    wanted = local(rows()).predict(INPUTS, "level").mean
    np.testing.assert_array_equal(fleet["b"].predict(INPUTS, "level").mean, wanted)


def test_many_keys_from_a_program_that_does_other_things(service):
    async def work():
        async with AsyncClient(str(service.base_url)) as client:
            fleet = await client.create_fleet("pumps", SPECIFICATION["channels"], **TABLES)
            report = await fleet.update([{"pump": "a", **row} for row in rows()], key="pump")
            assert report["updated"] == 1
            assert await fleet.keys() == ["a"]
            return await fleet["a"].predict(INPUTS, "level")

    wanted = local(rows()).predict(INPUTS, "level").mean
    np.testing.assert_array_equal(asyncio.run(work()).mean, wanted)


def test_the_same_from_a_program_that_does_other_things(service):
    async def work():
        async with AsyncClient(str(service.base_url)) as client:
            model = await client.create("plant", SPECIFICATION["channels"], **TABLES)
            await model.update(rows())
            found = await asyncio.gather(*(model.predict(INPUTS, "level") for _ in range(5)))
            await model.hyperparameters()
            assert await client.models() == ["plant"]
            assert (await model.download()).observations["level"] == 10
            return found

    wanted = local(rows()).predict(INPUTS, "level").mean
    for prediction in asyncio.run(work()):
        np.testing.assert_array_equal(prediction.mean, wanted)


class Flaky(BaseHTTPRequestHandler):
    """Answers 503, then 429, then breaks off, and only then as it should."""

    seen = ()

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        type(self).seen += ((self.headers["Idempotency-Key"], self.rfile.read(size)),)
        turn = len(self.seen)
        if turn == 3:
            self.connection.close()
            return
        self.send_response({1: 503, 2: 429}.get(turn, 200))
        if turn == 2:
            self.send_header("Retry-After", "0")
        body = b'{"update": 1}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given):
        pass


def test_observations_are_sent_again_with_the_same_key():
    Flaky.seen = ()
    with HTTPServer(("127.0.0.1", 0), Flaky) as flaky:
        thread = threading.Thread(target=flaky.serve_forever, daemon=True)
        thread.start()
        with Client(f"http://127.0.0.1:{flaky.server_port}") as client:
            assert client.model("plant").update(rows()).update == 1
        flaky.shutdown()
        thread.join(10)
    assert len(Flaky.seen) == 4
    assert len(set(Flaky.seen)) == 1


def test_a_service_that_is_not_there_is_said_to_be_so():
    with (
        Client("http://127.0.0.1:9", attempts=2) as client,
        pytest.raises(ServiceError, match="reached"),
    ):
        client.models()


def test_a_service_that_starts_late_is_waited_for(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = []

    def work():
        with Client(f"http://127.0.0.1:{port}", attempts=100, longest_pause=0.2) as client:
            found.append(client.create("plant", SPECIFICATION["channels"], **TABLES))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(0.3)
    with serving(tmp_path / "models.db", port=port):
        thread.join(20)
    assert len(found) == 1


def test_tokens_are_sent(tmp_path):
    from streamgp.service import new_token

    secret, token = new_token("all", ["read", "write", "admin"])
    with serving(tmp_path / "models.db", tokens=(token,)) as service:
        with Client(str(service.base_url), secret) as client:
            assert client.models() == []
        with Client(str(service.base_url)) as client, pytest.raises(ServiceError) as refused:
            client.models()
        assert refused.value.status == 401
