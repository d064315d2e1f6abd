"""Models that follow a feed: every message once, whatever comes in between."""

import json
import os
import signal
import time
from functools import partial

import pytest

import streamgp as sgp
from streamgp.cli import main
from streamgp.errors import ConfigurationError
from streamgp.service.feeding import Source
from tests.service.running import rows, running, serving, specification, wait_for_run


def lines(*batches):
    return "".join(json.dumps(row) + "\n" for batch in batches for row in batch)


def wait_for(service, count):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        answer = service.get("/v1/models/plant").json()
        if answer["observations"]["level"] >= count:
            return answer["observations"]["level"]
        time.sleep(0.02)
    raise AssertionError(answer["observations"])


def test_a_file_that_grows_is_followed_through_restarts(tmp_path):
    path, store = tmp_path / "readings.jsonl", tmp_path / "models.db"
    path.write_text(lines(rows(10)))
    url = f"file://{path}?model=plant"
    with serving(store, sources=(url,)) as service:
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 10) == 10
        with path.open("a") as file:
            file.write(lines(rows(5, begin=10)))
        assert wait_for(service, 15) == 15
    with path.open("a") as file:
        file.write(lines(rows(5, begin=15)))
    with serving(store, sources=(url,)) as service:
        assert wait_for(service, 20) == 20
        time.sleep(0.5)
        assert wait_for(service, 20) == 20


def test_messages_that_cannot_be_learned_are_passed_over(tmp_path):
    path = tmp_path / "readings.jsonl"
    bad = 'no json\n{"hour": 3.0, "other": 1}\n{"hour": 4.0, "level": "high"}\n'
    path.write_text(lines(rows(4)) + bad + lines(rows(4, begin=4)))
    with serving(tmp_path / "models.db", sources=(f"file://{path}?model=plant",)) as service:
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 8) == 8
        path.write_text(path.read_text() + bad)
        until = time.monotonic() + 20
        offset = partial(service.engine.store.offset, f"file://{path}", model="model/plant")
        while offset()["offset"] < path.stat().st_size:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert service.get("/v1/models/plant").json()["observations"]["level"] == 8
        assert 'streamgp_source_refused_total{model="plant"} 6.0' in service.get("/metrics").text


def test_csv(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text("hour,level,alarm\n1,2.0,1\n2,3.0,\n")
    with serving(tmp_path / "models.db", sources=(f"file://{path}?model=plant",)) as service:
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 2) == 2


@pytest.mark.parametrize(
    "url",
    [
        "file:///a",
        "http://a/b?model=c",
        "kafka://a:1?model=b",
        "kafka://a:1/?model=b",
        "x",
        "nats:///a?model=b",
        "nats://me:secret@a:1/b?model=c",
    ],
)
def test_a_source_names_a_feed_and_a_model(url):
    with pytest.raises(ConfigurationError, match="such as"):
        Source(url)
    with pytest.raises(SystemExit, match="such as"):
        main(["serve", "--no-tokens", "--source", url])


@pytest.fixture
def topic():
    """The address of a topic of librdkafka's mock broker, and a function that sends rows there."""
    kafka = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    producer = kafka.Producer(
        {"bootstrap.servers": "x", "test.mock.num.brokers": 1, "log_level": 0}
    )
    (broker,) = producer.list_topics(timeout=10).brokers.values()

    def send(batch):
        for number, row in enumerate(batch):
            text = json.dumps(row, indent=number % 3 or None)
            producer.produce("readings", text.encode(), partition=number % 2)
        producer.flush(10)

    return f"kafka://{broker.host}:{broker.port}/readings", send


def test_a_topic_of_kafka_is_followed_through_restarts(tmp_path, topic):
    address, send = topic
    send(rows(10))
    url = f"{address}?model=plant"
    with serving(tmp_path / "models.db", sources=(url,)) as service:
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 10) == 10
        send(rows(6, begin=10))
        assert wait_for(service, 16) == 16
        assert service.engine.store.offset(address, model="model/plant") == {"0": 8, "1": 8}
    send([*rows(4, begin=16), {"hour": 1.0, "other": 2.0}])
    with serving(tmp_path / "models.db", sources=(url,)) as service:
        assert wait_for(service, 20) == 20
        time.sleep(0.5)
        assert wait_for(service, 20) == 20


def test_a_run_follows_a_topic_of_kafka_through_kills(tmp_path, topic):
    url, send = topic
    path = tmp_path / "run.sgp"
    for step in range(2):
        send(rows(20, begin=20 * step))
        with running(path, url) as process:
            wait_for_run(process, path, 20 * step + 10)
            os.kill(process.pid, signal.SIGKILL)  # in the middle
    with running(path, url) as process:
        wait_for_run(process, path, 40)
        time.sleep(0.5)
        process.terminate()
        process.communicate(timeout=30)
    assert sgp.load(path).observations == {"level": 40, "alarm": 40}
