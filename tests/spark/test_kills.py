"""Drivers and workers that are killed: every row counts once all the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import streamgp as sgp
from streamgp.spark import models
from tests.spark.conftest import readings, result, write

ROOT = Path(__file__).parents[2]
BATCHES = 6


def started(folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.driver", str(folder)],
        cwd=ROOT, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def committed(folder):
    """How many micro-batches are in the checkpoint."""
    commits = folder / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0


def wait_for(folder, count, driver):
    end = time.monotonic() + 180
    while committed(folder) < count and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.05)


def workers(session):
    """The processes of Python that work for the driver of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            own = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[3])
        except (OSError, IndexError):
            continue  # it has ended
        if own == session and b"pyspark.daemon" in command:
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_every_row_counts_once(spark, tmp_path, victim):
    batches = [readings(number) for number in range(BATCHES)]
    for number, batch in enumerate(batches):
        write(batch, tmp_path / "in", number)
    driver = started(tmp_path)
    wait_for(tmp_path, 2, driver)
    if victim == "driver":
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        assert committed(tmp_path) < BATCHES
        driver = started(tmp_path)
    else:
        own = workers(driver.pid)
        assert own
        for process in own:
            os.kill(process, signal.SIGKILL)
    assert driver.wait(timeout=300) == 0
    scores = result(spark, tmp_path)
    assert len(scores) == sum(map(len, batches))
    alone = sgp.ContinualGP(sgp.Gaussian())
    for batch in batches:
        alone.update(batch[batch["sensor"] == "s2"].drop(columns="sensor"), inputs="time")
    found = {
        row.sensor: bytes(row.model) for row in models(spark, tmp_path / "checkpoint").collect()
    }
    learned = sgp.from_bytes(found["s2"])
    assert learned.observations == alone.observations
    times = batches[3]["time"].iloc[:6]
    np.testing.assert_allclose(learned.predict(times).mean, alone.predict(times).mean, atol=1e-7)
