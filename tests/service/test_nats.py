"""Streams of NATS JetStream: every message once, through kills of those who read and of the server.

`make test-nats` installs the server.
"""

import os
import signal
import time

import pytest

import streamgp as sgp
from streamgp.cli import main
from streamgp.errors import DataError, SourceError
from streamgp.sources import urls
from tests.service.running import (
    CONFIG,
    commanded,
    rows,
    running,
    serving,
    specification,
    wait_for_run,
)
from tests.service.test_feeding import wait_for

pytest.importorskip("nats", reason="needs nats-py")

from streamgp.sources import nats as nats_feed
from streamgp_lab.checks import nats_server

pytestmark = pytest.mark.skipif(
    nats_server.program() is None, reason="needs nats-server: `make test-nats` installs it"
)


@pytest.fixture
def server(tmp_path):
    with nats_server.NatsServer(tmp_path / "nats") as made:
        yield made


def url(server, more=""):
    return f"nats://{server.address}/{nats_server.STREAM}{more}"


def read_all(feed, most=7, tries=5):
    """What there is, and the last place."""
    found, place = [], None
    while tries:
        came = feed.read(most)
        assert len(came.each) <= most
        found += came.each
        place, tries = came.place, tries - (not came.each)
    return found, place


def numbered(begin, end):
    return [str(n).encode() for n in range(begin, end)]


@pytest.fixture
def reading(server):
    """Begins to read, as a process that has just started does."""
    made = []

    def begin(place=None, more=""):
        made.append(urls.opened(url(server, more), place))
        return made[-1]

    yield begin
    for feed in made:
        feed.close()


def test_a_place_is_where_one_goes_on(server, reading):
    server.send(numbered(0, 30))
    feed = reading()
    came = feed.read(7)
    assert came.each == numbered(0, 7)
    server.send(numbered(30, 40))
    assert read_all(reading(came.place))[0] == numbered(7, 40)
    found, place = read_all(feed)
    assert found == numbered(7, 40)
    assert read_all(reading(place), tries=2)[0] == []


def test_one_subject_of_a_stream(server, reading):
    for n in range(6):
        server.send(numbered(n, n + 1), f"readings.{'ab'[n % 2]}")
    found, place = read_all(reading(None, "?subject=readings.b"))
    assert found == [b"1", b"3", b"5"]
    assert place["sequence"] == 6


def test_a_server_that_is_killed_and_comes_again(server, reading):
    server.send(numbered(0, 10))
    feed = reading()
    assert feed.read(4).each == numbered(0, 4)
    server.kill()
    server.start()
    server.send(numbered(10, 20))
    assert read_all(feed, tries=30)[0] == numbered(4, 20)


def test_a_server_that_forgets_who_reads(server, reading):
    server.send(numbered(0, 3))
    feed = reading()
    assert read_all(feed, tries=1)[0] == numbered(0, 3)
    server.forget_readers()
    server.send(numbered(3, 6))
    assert read_all(feed, tries=40)[0] == numbered(3, 6)


def test_messages_that_are_lost_on_their_way_are_asked_for_again(server, reading):
    server.send(numbered(0, 12))
    feed = reading()
    feed.read(2)
    fetch = feed._reader.fetch

    async def losing(*words, **named):
        return (await fetch(*words, **named))[1:]

    feed._reader.fetch = losing
    assert read_all(feed)[0] == numbered(2, 12)


def test_what_devices_publish_by_mqtt(server, reading):
    mqtt = pytest.importorskip("paho.mqtt.client", reason="needs paho-mqtt")
    device = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="device")
    device.connect("127.0.0.1", server.mqtt_port)
    device.loop_start()
    for text in numbered(0, 5):
        device.publish("readings/north", text, qos=1).wait_for_publish(10)
    device.disconnect()
    device.loop_stop()
    assert read_all(reading(None, "?subject=readings.north"))[0] == numbered(0, 5)


def test_another_stream_of_the_same_name_is_read_from_its_begin(server, reading):
    server.send(numbered(0, 5))
    place = read_all(reading(), tries=1)[1]
    server.delete()
    server.make()
    server.send(numbered(5, 8))
    feed = reading(place)
    assert feed.lost
    assert read_all(feed, tries=2)[0] == numbered(5, 8)


def test_what_is_not_there_is_told(server, monkeypatch):
    monkeypatch.setattr(nats_feed, "_PATIENCE", 2.0)
    with pytest.raises(DataError, match="Create it first"):
        urls.opened(f"nats://{server.address}/OTHER", None)
    server.kill()
    with pytest.raises(SourceError, match="server that answers"):
        urls.opened(url(server), None)


def test_the_service_follows_a_stream_through_restarts(server, tmp_path):
    source = url(server, "?model=plant")
    server.send(rows(10))
    with serving(tmp_path / "models.db", sources=(source,)) as service:
        service.post("/v1/models", json=specification("plant"))
        assert wait_for(service, 10) == 10
        server.send([*rows(6, begin=10), {"hour": 1.0, "other": 2.0}, b"no json"])
        assert wait_for(service, 16) == 16
    server.send(rows(4, begin=16))
    with serving(tmp_path / "models.db", sources=(source,)) as service:
        assert wait_for(service, 20) == 20
        time.sleep(0.5)
        assert wait_for(service, 20) == 20
        place = service.engine.store.offset(url(server), model="model/plant")
        assert place["sequence"] == 22


def test_a_run_follows_a_stream_through_kills(server, tmp_path):
    killed, alone, source = tmp_path / "killed.sgp", tmp_path / "alone.sgp", url(server)
    for step in range(3):
        server.send(rows(20, begin=20 * step))
        with running(killed, source) as process:
            wait_for_run(process, killed, 20 * step + 10)
            os.kill(process.pid, signal.SIGKILL)  # in the middle
    bad = [b"no json", {"hour": 1.0, "level": "high"}, {"hour": 2.0, "other": 1.0}]
    server.send([*rows(8, begin=60), *bad, *rows(5, begin=68)])
    with running(killed, source) as process:
        wait_for_run(process, killed, 72)  # the last of 76 messages waits for its batch of five
        os.kill(process.pid, signal.SIGKILL)
    assert sgp.load(killed).observations == {"level": 72, "alarm": 72}
    server.send(rows(4, begin=73))
    for path in (killed, alone):
        with running(path, source) as process:
            wait_for_run(process, path, 77)
            process.terminate()
            _, said = process.communicate(timeout=30)
        assert "77 rows are learned" in said.decode()
        assert "3 rows left out" in said.decode()
        assert sgp.load(path).observations == {"level": 77, "alarm": 77}
    assert killed.read_bytes() == alone.read_bytes()


def test_a_run_of_a_fleet_follows_a_stream_through_kills(server, tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG)
    where = tmp_path / "ward.db"
    words = ["fleet", "run", f"{tmp_path / 'run.toml'}", url(server), "--key", "bed"]
    seen = {}
    for step in range(2):
        batch = rows(10, begin=10 * step)
        server.send([{"bed": "ab"[n % 2], **row} for n, row in enumerate(batch)])
        with commanded(*words, "--store", f"{where}") as process:
            until = time.monotonic() + 60
            while sum(seen.values()) < 10 * step + 10:
                assert process.poll() is None, process.stderr.read().decode()
                assert time.monotonic() < until
                time.sleep(0.05)
                with sgp.Store(where) as store:
                    seen = {i.key: i.observations["level"] for i in store.infos()}
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGKILL)
    assert seen == {"a": 10, "b": 10}


def test_a_run_goes_on_with_the_feed_that_it_has_followed(server, tmp_path):
    path, table = tmp_path / "run.sgp", tmp_path / "a.csv"
    table.write_text("hour,level\n1,2\n")
    server.send(rows(5))
    with running(path, url(server)) as process:
        wait_for_run(process, path, 5)
        process.terminate()
        process.communicate(timeout=30)
    for other in (url(server, "?subject=readings.b"), f"{table}"):
        with pytest.raises(SystemExit, match="start anew"):
            main(["run", f"{tmp_path / 'run.toml'}", other])
