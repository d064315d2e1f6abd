"""One writer per model, readers that never wait, bounded queues, and models that come from disk."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from streamgp.service import engine as engines
from streamgp.service import memory
from streamgp.service.lanes import Lanes
from streamgp.service.problems import RefusedError
from tests.service.running import rows, serving, specification


def test_work_of_one_lane_is_done_in_order_and_one_at_a_time():
    lanes, order, inside = Lanes(4, 100, 100), [], []

    def work(number):
        inside.append(number)
        assert len(inside) == 1
        time.sleep(0.001)
        inside.pop()
        order.append(number)

    futures = [lanes.submit("a", lambda n=n: work(n)) for n in range(30)]
    for future in futures:
        future.result(10)
    assert order == list(range(30))
    lanes.close()


def test_lanes_run_side_by_side():
    lanes, barrier = Lanes(2, 10, 10), threading.Barrier(2, timeout=10)
    for future in [lanes.submit(key, barrier.wait) for key in "ab"]:
        future.result(10)
    lanes.close()


def test_a_full_lane_refuses_and_others_do_not():
    lanes, go = Lanes(1, 2, 100), threading.Event()
    first = lanes.submit("a", go.wait)
    while lanes.waiting("a"):
        time.sleep(0.001)
    waiting = [lanes.submit("a", lambda: 1) for _ in range(2)]
    with pytest.raises(RefusedError) as refused:
        lanes.submit("a", lambda: 1)
    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) >= 1
    other = lanes.submit("b", lambda: 2)
    go.set()
    assert first.result(10)
    assert [future.result(10) for future in [*waiting, other]] == [1, 1, 2]
    lanes.close()


def test_an_error_stays_with_its_own_work():
    lanes = Lanes(1, 10, 10)
    failing, fine = lanes.submit("a", lambda: 1 / 0), lanes.submit("a", lambda: 1)
    with pytest.raises(ZeroDivisionError):
        failing.result(10)
    assert fine.result(10) == 1
    assert lanes.total == 0
    lanes.close()


@pytest.fixture
def slow(monkeypatch):
    """Updates that wait to be let go."""
    begun, go, usual = threading.Event(), threading.Event(), engines.updated

    def waiting(model, frame):
        begun.set()
        assert go.wait(20)
        return usual(model, frame)

    monkeypatch.setattr(engines, "updated", waiting)
    yield begun, go
    go.set()


def test_readers_see_the_last_commit_while_a_model_learns(service, slow):
    begun, go = slow
    go.set()
    service.post("/v1/models", json=specification("plant"))
    where = "/v1/models/plant"
    service.post(f"{where}/observations", json=rows())
    before = service.post(f"{where}/predict", json={"inputs": [1.0]}).json()
    go.clear()
    begun.clear()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(service.post, f"{where}/observations", json=rows(begin=10))
        assert begun.wait(10)
        during = service.post(f"{where}/predict", json={"inputs": [1.0]}).json()
        assert during == before
        assert service.get(where).json()["updates"] == 1
        go.set()
        assert writing.result().json()["update"] == 2
    after = service.post(f"{where}/predict", json={"inputs": [1.0]}).json()
    assert after["update"] == 2


def test_a_full_queue_is_answered_with_429_and_nothing_is_lost(tmp_path, slow):
    begun, go = slow
    with serving(tmp_path / "models.db", queue=2) as service, ThreadPoolExecutor(3) as pool:
        service.post("/v1/models", json=specification("plant"))
        where = "/v1/models/plant/observations"
        first = pool.submit(service.post, where, json=rows())
        assert begun.wait(10)
        waiting = [pool.submit(service.post, where, json=rows(begin=10 * i)) for i in (1, 2)]
        while service.engine.lanes.waiting("model/plant") < 2:
            time.sleep(0.01)
        refused = service.post(where, json=rows(begin=30))
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        go.set()
        assert all(each.result().status_code == 200 for each in [first, *waiting])
        assert service.get("/v1/models/plant").json()["updates"] == 3


def test_a_failed_commit_leaves_the_model_as_it_was(service, monkeypatch):
    service.post("/v1/models", json=specification("plant"))
    where = "/v1/models/plant"
    service.post(f"{where}/observations", json=rows())
    file = service.get(f"{where}/file").content

    def full(*given):
        raise OSError("the disk is full")

    store = service.engine.store
    with monkeypatch.context() as broken:
        broken.setattr(store, "transaction", full)
        assert service.post(f"{where}/observations", json=rows(begin=10)).status_code == 500
    assert service.get(f"{where}/file").content == file
    assert service.post(f"{where}/observations", json=rows(begin=10)).json()["update"] == 2


def test_a_change_by_another_process_is_not_lost(service):
    service.post("/v1/models", json=specification("plant"))
    service.post("/v1/models/plant/observations", json=rows())
    store = service.engine.store
    other = store.get("model/plant")
    other.notes["from"] = "elsewhere"
    store.put("model/plant", other)
    answer = service.post("/v1/models/plant/observations", json=rows(begin=10))
    assert answer.json()["update"] == 2
    assert store.get("model/plant").notes == {"from": "elsewhere"}


def test_more_models_than_memory_holds(tmp_path):
    with serving(tmp_path / "models.db", cache=3) as service:
        service.post("/v1/fleets", json=specification("pumps"))
        for turn in range(2):
            for key in range(8):
                where = f"/v1/fleets/pumps/{key}/observations"
                answer = service.post(where, json=rows(begin=10 * turn, seed=key))
                assert answer.json()["update"] == turn + 1
        assert len(service.engine.cache.everything()) <= 3
        for key in range(8):
            assert service.get(f"/v1/fleets/pumps/{key}").json()["updates"] == 2
        assert service.engine.cache.loads >= 8


def test_many_writers_of_many_models_lose_nothing(service):
    for name in "ab":
        service.post("/v1/models", json=specification(name))

    def send(number):
        name = "ab"[number % 2]
        headers = {"Idempotency-Key": f"key-{number // 2}"}
        where = f"/v1/models/{name}/observations"
        return service.post(where, json=rows(count=2, begin=2 * number), headers=headers)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, [*range(24), *range(24)]))
    assert all(answer.status_code == 200 for answer in answers)
    for name in "ab":
        assert service.get(f"/v1/models/{name}").json()["observations"]["level"] == 24


@pytest.mark.skipif(memory._malloc_trim is None, reason="needs the GNU C library")
def test_memory_of_a_long_update_goes_back_to_the_system(monkeypatch):
    monkeypatch.setattr(memory, "_LONG", 0.0)

    def resident():
        text = Path("/proc/self/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def work():
        parts = [np.ones(8000) for _ in range(2000)]  # 128 MB
        return parts[-1]  # which is behind all others, so that they are not at the heap's end

    lanes = Lanes(1, 5, 5)
    before = resident()
    kept = lanes.submit("a", work).result()
    lanes.close()
    assert kept.sum() == 8000
    assert resident() < before + 40
