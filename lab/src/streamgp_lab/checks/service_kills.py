"""Kill the service at random moments under load, and compare its models with undisturbed ones.

Two clients feed a model each, batch after batch, and send a batch again until it is answered. The
service is killed with SIGKILL and started again. Every batch must have been learned once and in
order, and the files of the models must equal those of a service that was never killed.

Meanwhile further models follow a file that grows, a topic of Kafka (librdkafka's mock broker, in
this process) and, if nats-server is installed, a stream of NATS JetStream, whose server is killed
too, each tenth time. Every message must have been learned once.
"""

import contextlib
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np

from streamgp.client import Client
from streamgp_lab.checks import command, nats_server
from streamgp_lab.checks.served import Served
from streamgp_lab.progress import bar

NAMES = ("batches", "samples")
FOLLOWERS = ("file", "kafka", "nats") if nats_server.program() else ("file", "kafka")
CHANNELS = {"level": "Gaussian", "alarm": "Bernoulli"}
MODEL = {
    "latents": 1,
    "inducing": {"kind": "Adaptive", "budget": 16},
    "learning": {"rounds": 1, "every": 50},
}
_PAUSE = 1.0  # seconds between two kills, at most


def rows(name: str, number: int) -> list[dict[str, Any]]:
    """The rows of one batch."""
    generator = np.random.default_rng([NAMES.index(name), number])
    t = 5 * number + np.sort(generator.uniform(0, 5, size=5))
    f = np.sin(t / 8)
    noise = generator.normal(size=(2, 5))
    return [
        {"hour": x, "level": y, "alarm": bool(a)}
        for x, y, a in zip(t.tolist(), (f + 0.3 * noise[0]).tolist(), f > noise[1], strict=True)
    ]


def create(url: str) -> None:
    with Client(url) as client:
        for name in FOLLOWERS:
            model = {**MODEL, "learning": False}
            client.create(name, CHANNELS, data={"inputs": "hour"}, model=model)
        for name in NAMES:
            client.create(
                name, CHANNELS, data={"inputs": "hour"}, model=MODEL,
                stream={"samples": name == "samples"},
            )  # fmt: skip


class Feeder(threading.Thread):
    """Feeds one model until it is told to stop, or for so many batches."""

    def __init__(self, url: str, name: str, most: int | None = None):
        super().__init__(daemon=True)
        self.url, self.name_of_model, self.most = url, name, most
        self.enough = threading.Event()
        self.sent, self.repeated = 0, 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with Client(self.url, attempts=10_000, longest_pause=0.1) as client:
                model = client.model(self.name_of_model)
                while self.sent != self.most and not self.enough.is_set():
                    report = model.update(
                        rows(self.name_of_model, self.sent), key=f"batch-{self.sent}"
                    )
                    assert report["observations"] == {"level": 5, "alarm": 5}
                    self.sent += 1
                    self.repeated += report["repeated"]
        except BaseException as error:
            self.error = error


class Feeds(threading.Thread):
    """Writes messages into a file, a topic and a stream."""

    def __init__(self, folder: Path):
        super().__init__(daemon=True)
        self.nats = nats_server.NatsServer(folder / "nats") if "nats" in FOLLOWERS else None
        self.broker = threading.Lock()  # whoever has it may use the NATS server, or kill it
        self.enough, self.sent = threading.Event(), 0
        self._path = folder / "readings.jsonl"
        self._path.touch()
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0}
        )
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        urls = [
            f"file://{self._path}?model=file",
            f"kafka://{broker.host}:{broker.port}/readings?model=kafka",
        ]
        if self.nats is not None:
            urls.append(f"nats://{self.nats.address}/{nats_server.STREAM}?model=nats")
        self.urls = tuple(urls)

    def run(self) -> None:
        with self._path.open("a") as file:
            while not self.enough.wait(0.02):
                batch = rows("batches", self.sent // 5)
                for row in batch:
                    text = json.dumps(row)
                    file.write(f"{text}\n")
                    self._producer.produce("readings", text.encode())
                    self.sent += 1
                file.flush()
                self._producer.poll(0)
                if self.nats is not None:
                    with self.broker:
                        self.nats.send(batch)
        self._producer.flush(30)

    def kill_broker(self) -> None:
        """Kill the NATS server, and start it again."""
        if self.nats is not None:
            with self.broker:
                self.nats.kill()
                self.nats.start()

    def compare(self, url: str) -> None:
        """Wait until all messages are learned, and see that none is learned twice."""
        with Client(url) as client:
            for name in FOLLOWERS:
                until, seen = time.monotonic() + 120, -1
                while seen < self.sent and time.monotonic() < until:
                    time.sleep(0.2)
                    seen = client.model(name).describe()["observations"]["level"]
                time.sleep(1)
                seen = client.model(name).describe()["observations"]["level"]
                assert seen == self.sent, f"{name}: {seen} of {self.sent} messages"


def files(url: str) -> dict[str, tuple[bytes, int]]:
    """The file of each model, and how many observations it has learned."""
    found = {}
    with Client(url) as client:
        for name in NAMES:
            model = client.model(name)
            seen = model.describe()["observations"]["level"]
            found[name] = (model.download().to_bytes(), seen)
    return found


def disturbed(path: Path, kills: int, seed: int, line: Any) -> tuple[dict, list[Feeder], int]:
    """Feed a service that is killed again and again."""
    feeds = Feeds(path.parent)
    generator, served = np.random.default_rng(seed), Served(path, sources=feeds.urls)
    with feeds.nats or contextlib.nullcontext(), served:
        create(served.url)
        feeds.start()
        feeders = [Feeder(served.url, name) for name in NAMES]
        for feeder in feeders:
            feeder.start()
        for number in range(kills):
            feeders[0].join(generator.uniform(0, _PAUSE))
            served.kill()
            if number % 10 == 5:
                feeds.kill_broker()
            served.start()
            line.advance()
        for feeder in feeders:
            feeder.enough.set()
            feeder.join(120)
            if feeder.error is not None:
                raise feeder.error
        feeds.enough.set()
        feeds.join(30)
        feeds.compare(served.url)
        return files(served.url), feeders, feeds.sent


def alone(path: Path, counts: list[int]) -> dict:
    """Feed a service that is left alone the same batches."""
    with Served(path) as served:
        create(served.url)
        feeders = [Feeder(served.url, n, c) for n, c in zip(NAMES, counts, strict=True)]
        for feeder in feeders:
            feeder.start()
        for feeder in feeders:
            feeder.join(600)
            assert feeder.sent == feeder.most
        return files(served.url)


def main(kills: int = 200, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory() as folder, bar("kills", kills) as line:
        found, feeders, messages = disturbed(Path(folder) / "killed.db", kills, seed, line)
        counts = [feeder.sent for feeder in feeders]
        wanted = alone(Path(folder) / "alone.db", counts)
    for name, count in zip(NAMES, counts, strict=True):
        assert found[name][1] == 5 * count, f"{name}: {found[name][1]} of {5 * count} learned"
        assert found[name][0] == wanted[name][0], f"{name}: the files differ"
    repeated = sum(feeder.repeated for feeder in feeders)
    print(
        f"{kills} kills, {sum(counts)} batches, {repeated} answered a second time. None was lost, "
        "none learned twice, and the models are the same, byte for byte. Of each feed "
        f"({', '.join(FOLLOWERS)}) {messages} messages were learned once."
    )


if __name__ == "__main__":
    command("service_kills")
