"""Files that grow: every row is learned once, however often the run or the file is replaced."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.cli import main
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.sources import Follower

CONFIG = """
[channels]
level = { kind = "Gaussian", noise = 0.3 }

[data]
inputs = "hour"

[model]
latents = [{ kind = "RBF", lengthscale = 3.0 }]
inducing = { kind = "Adaptive", budget = 12 }
learning = false

[stream]
batch = 8
snapshot = 0
"""


def rows(begin, end):
    hours = np.arange(begin, end) / 4
    return pd.DataFrame({"hour": hours, "level": np.sin(hours)})


def append(path, table, kind="csv"):
    """Write rows at the end, with a header if the file is new."""
    with open(path, "a") as file:
        if kind == "csv":
            table.to_csv(file, index=False, header=file.tell() == 0)
        else:
            table.to_json(file, orient="records", lines=True)


# -- lines and places ----------------------------------------------------------------------------


def drained(follower, most=3):
    """All lines that there are, the number of files that ended, and the last place."""
    found, ends, idle = [], 0, 0
    while not idle:
        came = follower.read(most)
        assert len(came.lines) <= most
        found += [line.decode().strip() for line in came.lines]
        ends += came.ended
        idle = not came.lines and not came.ended
    return found, ends, came.place


def lines(*numbers):
    return "".join(f"line {n}\n" for n in numbers)


def named(*numbers):
    return [f"line {n}" for n in numbers]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "readings.csv"


@pytest.fixture
def follow(path):
    """Begins to follow the file, as a process that has just started does."""
    made = []

    def begin(place=None):
        made.append(Follower(path, place, header=True))
        return made[-1]

    yield begin
    for follower in made:
        follower.close()


def write(path, text, mode="a"):
    with open(path, mode, newline="") as file:
        file.write(text)


def test_lines_come_when_they_are_whole(path, follow):
    follower = follow()
    assert follower.read(5) == (b"", [], [], None, False)
    write(path, "hea")
    assert drained(follower)[0] == []
    write(path, "der\r\nline 1\r\n\r\n  \nline")
    assert drained(follower)[0] == ["line 1"]
    write(path, " 2\n" + lines(*range(3, 11)))
    assert drained(follower)[0] == named(*range(2, 11))
    assert follower.read(1).header == b"header\r\n"


def test_long_lines_and_many_lines(path, follow):
    text = ["x" * 200_000, *(f"{n} é" for n in range(30_000))]
    write(path, "header\n" + "\n".join(text) + "\n")
    assert drained(follow(), 7000)[0] == text


def test_a_place_is_where_one_goes_on(path, follow):
    write(path, "header\n" + lines(1, 2, 3))
    came = follow().read(2)
    write(path, lines(4))
    follower = follow(came.place)
    assert drained(follower)[0] == named(3, 4)
    assert follower.read(1).header == b"header\n"
    assert not follower.lost


def test_a_file_that_is_renamed_is_read_to_its_end(path, follow):
    write(path, "header\n" + lines(1, 2))
    follower = follow()
    assert drained(follower)[0] == named(1, 2)
    write(path, lines(3))
    path.rename(path.with_name("readings.csv.1"))
    write(path.with_name("readings.csv.1"), lines(4))
    assert drained(follower)[:2] == (named(3, 4), 0)
    write(path, "other header\n" + lines(5))
    found, ends, _ = drained(follower)
    assert (found, ends) == (named(5), 1)
    assert follower.read(1).header == b"other header\n"


@pytest.mark.parametrize("name", ["readings.csv.1", "older"])
def test_a_file_that_was_renamed_meanwhile_is_found(path, follow, name):
    write(path, "header\n" + lines(1, 2, 3))
    place = follow().read(2).place
    path.rename(path.with_name(name))
    write(path, "header\n" + lines(4))
    follower = follow(place)
    assert drained(follower)[:2] == (named(3, 4), 1)
    assert not follower.lost


@pytest.mark.parametrize("is_open", [True, False])
def test_a_file_that_is_copied_and_truncated(path, follow, is_open):
    write(path, "header\n" + lines(1, 2))
    follower = follow()
    place = drained(follower)[2]
    write(path, lines(3))
    shutil.copy(path, path.with_name("readings.csv.1"))
    write(path, "header\n" + lines(*range(4, 40)), "w")
    follower = follower if is_open else follow(place)
    assert drained(follower)[:2] == (named(3, *range(4, 40)), 1)


def test_a_file_that_is_truncated_begins_anew(path, follow):
    write(path, "header\n" + lines(1, 2, 3))
    follower = follow()
    drained(follower)
    write(path, "header\n", "w")
    assert drained(follower)[:2] == ([], 1)
    write(path, lines(4))
    assert drained(follower)[0] == named(4)


def test_a_file_that_is_gone_is_said_to_be_lost(path, follow):
    write(path, "header\n" + lines(1, 2, 3))
    place = follow().read(2).place
    write(path, "header\n" + lines(7, 8, 9, 10), "w")
    follower = follow(place)
    assert follower.lost
    assert drained(follower)[0] == named(7, 8, 9, 10)


def test_a_file_that_was_copied_back_is_the_same(path, follow):
    """Its inode is another one, its bytes are not."""
    write(path, "header\n" + lines(1, 2, 3))
    place = follow().read(2).place
    text = path.read_text()
    path.rename(path.with_name("x"))
    path.with_name("x").unlink()
    write(path, text + lines(4))
    place = dataclasses.replace(place, inode=place.inode + 1)
    assert drained(follow(place))[0] == named(3, 4)


def test_after_the_end_of_a_file_the_place_is_in_the_next_one(path, follow):
    """So that nothing is missed if that one is renamed too before its first line is read."""
    write(path, "header\n" + lines(1))
    follower = follow()
    drained(follower)
    path.rename(path.with_name("first"))
    write(path, "header\n")
    place = follower.read(1).place
    path.with_name("first").unlink()
    write(path, lines(2))
    path.rename(path.with_name("second"))
    write(path, "header\n" + lines(3))
    assert drained(follow(place))[0] == named(2, 3)


# -- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG)
    return tmp_path


def words(folder, *more, data="data.csv"):
    where = ("--model", str(folder / "run.sgp"))
    return ["run", str(folder / "run.toml"), str(folder / data), *where, "--follow", *more]


def learned(folder):
    """How many rows the snapshot has learned."""
    path = folder / "run.sgp"
    return Bookkeeping.of(sgp.load(path)).rows if path.exists() else 0


class Running:
    """`streamgp run --follow` in a process of its own."""

    def __init__(self, folder, *more, data="data.csv"):
        self.folder = folder
        command = [sys.executable, "-m", "streamgp", *words(folder, *more, data=data)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def until(self, count):
        limit = time.monotonic() + 60
        while learned(self.folder) < count:
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert learned(self.folder) == count
        return self

    def stop(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.communicate()[1]


def test_a_run_that_is_killed_learns_every_row_once(folder):
    """Through kills, half-written lines and rotation. It ends as one run over all rows does."""
    path = folder / "data.csv"
    append(path, rows(0, 20))
    Running(folder, "--predictions", str(folder / "said.csv")).until(16).stop()
    append(path, rows(20, 30))
    with open(path, "a") as file:
        file.write("7.5,")
    running = Running(folder, "--predictions", str(folder / "said.csv")).until(24)
    with open(path, "a") as file:
        file.write(f"{np.sin(7.5)}\n")
    append(path, rows(31, 35))
    running.until(32).stop()
    append(path, rows(35, 40))  # the run is dead while the file ends and another begins
    path.rename(folder / "data.csv.1")
    append(path, rows(40, 48))
    said = Running(folder, "--predictions", str(folder / "said.csv")).until(48).stop(signal.SIGTERM)
    assert "goes on with the next row" in said
    assert "48 rows are learned and saved" in said
    one = folder / "one"
    one.mkdir()
    (one / "run.toml").write_text(CONFIG)
    rows(0, 48).to_csv(one / "data.csv", index=False)
    out = ("--predictions", str(one / "said.csv"))
    main(["run", str(one / "run.toml"), str(one / "data.csv"), *out])
    model, whole = (sgp.load(f / "run.sgp") for f in (folder, one))
    for each in (model, whole):
        each._bookkeeping["run"].pop("place", None)
    assert model.to_bytes() == whole.to_bytes()
    assert (folder / "said.csv").read_bytes() == (one / "said.csv").read_bytes()


def test_a_run_that_did_not_follow_goes_on_as_one_that_does(folder, capsys):
    append(folder / "data.jsonl", rows(0, 16), "jsonl")
    model = str(folder / "run.sgp")
    main(["run", str(folder / "run.toml"), str(folder / "data.jsonl"), "--model", model])
    append(folder / "data.jsonl", rows(16, 26), "jsonl")
    said = Running(folder, data="data.jsonl").until(24).stop(signal.SIGINT)
    assert "The first 16 rows" in said
    assert sgp.load(model).observations == {"level": 24}
    with pytest.raises(SystemExit, match="expected `--follow`"):
        main(["run", str(folder / "run.toml"), str(folder / "data.jsonl"), "--model", model])


@pytest.mark.parametrize("data", ["-", "data.parquet"])
def test_what_cannot_be_followed_is_said_so(folder, data):
    source = data if data == "-" else str(folder / data)
    with pytest.raises(SystemExit, match="a file of CSV or JSONL to follow"):
        main(["run", str(folder / "run.toml"), source, "--follow"])


def test_standard_input_learns_the_rows_of_a_second_run(folder):
    """The pipe of `tail -f` that begins again has new rows; none of them may be left out."""
    command = [sys.executable, "-m", "streamgp", "run", str(folder / "run.toml"), "-"]
    for begin in (0, 16):
        process = subprocess.Popen([*command], stdin=subprocess.PIPE, text=True)
        process.stdin.write(rows(begin, begin + 16).to_csv(index=False))
        process.stdin.flush()
        limit = time.monotonic() + 60
        while learned(folder) < begin + 16 and time.monotonic() < limit:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert sgp.load(folder / "run.sgp").observations == {"level": 32}
