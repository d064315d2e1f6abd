"""A service that listens on a free port of this machine, and runs that follow feeds, for tests."""

import contextlib
import datetime
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np

import streamgp as sgp
from streamgp.service import Limits, Listening, Settings, server

WEEK = datetime.timedelta(days=7)

SPECIFICATION = {
    "channels": {"level": {"kind": "Gaussian", "noise": 0.3}, "alarm": "Bernoulli"},
    "data": {"inputs": "hour"},
    "model": {
        "latents": [{"kind": "RBF", "lengthscale": 3.0}],
        "inducing": {"kind": "Adaptive", "budget": 12},
        "learning": False,
    },
}

CONFIG = """
[channels]
level = { kind = "Gaussian", noise = 0.3 }
alarm = "Bernoulli"

[data]
inputs = "hour"

[model]
latents = [{ kind = "RBF", lengthscale = 3.0 }]
inducing = { kind = "Adaptive", budget = 12 }
learning = false

[stream]
batch = 5
snapshot = 0
"""


def specification(name, **changes):
    return {"name": name, **SPECIFICATION, **changes}


def rows(count=10, begin=0, seed=0):
    generator = np.random.default_rng([seed, begin])
    hours = np.arange(begin, begin + count) / 4
    noise = 0.3 * generator.normal(size=count)
    return [
        {"hour": t, "level": np.sin(t).item() + e, "alarm": bool(np.sin(t) > 0)}
        for t, e in zip(hours.tolist(), noise.tolist(), strict=True)
    ]


@contextlib.contextmanager
def serving(path, *, tokens=(), cache=8, port=0, sources=(), keep=WEEK, **limits):
    """A service in a thread of this process, and a client of it."""
    settings = Settings(
        path, tokens, open=not tokens, limits=Limits(**limits), cache=cache, sources=sources,
        keep_answers=keep,
    )  # fmt: skip
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    running = server(settings, Listening(port=listening.getsockname()[1]))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.005)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=address, timeout=30) as client:
            client.engine = running.config.app.state.engine
            yield client
    finally:
        running.config.app.state.engine.hub.close()
        running.should_exit = True
        thread.join(20)
        listening.close()
        assert not thread.is_alive()


def running(path, source):
    """`streamgp run` in a process of its own."""
    config = path.with_name("run.toml")
    config.write_text(CONFIG)
    return commanded("run", f"{config}", source, "--model", f"{path}")


@contextlib.contextmanager
def commanded(*words):
    """A command in a process of its own, which is killed at the end."""
    all_words = [sys.executable, "-m", "streamgp", *words]
    with subprocess.Popen(all_words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def learned(path):
    return sgp.load(path).observations["level"] if path.exists() else 0


def wait_for_run(process, path, count):
    until = time.monotonic() + 60
    while learned(path) < count:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < until
        time.sleep(0.02)
