"""The commands of fleets: tables of many keys in, stores out, and runs that are killed."""

import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.cli import main
from streamgp.cli.options import shown

CONFIG = """
[channels]
level = { kind = "Gaussian", noise = 0.3 }
alarm = "Bernoulli"

[data]
inputs = "hour"

[model]
latents = [{ kind = "RBF", lengthscale = 3.0 }]
inducing = { kind = "Adaptive", budget = 8 }
learning = false

[stream]
batch = 40
snapshot = 0
"""


def table(beds=6, hours=20, seed=0):
    generator = np.random.default_rng(seed)
    hour = np.repeat(np.arange(hours), beds) / 2
    level = np.sin(hour) + 0.3 * generator.normal(size=len(hour))
    alarm = np.where(generator.uniform(size=len(hour)) < 0.3, np.nan, level > 0)
    names = np.tile([f"bed {i}" for i in range(beds)], hours)
    return pd.DataFrame({"bed": names, "hour": hour, "level": level, "alarm": alarm})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ward.toml").write_text(CONFIG)
    table().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def words(folder, *more, data="data.csv", store="ward.db"):
    return [
        *("fleet", "run", str(folder / "ward.toml"), str(folder / data)),
        *("--key", "bed", "--store", str(folder / store), "--live", "3", *more),
    ]


def models(folder, store="ward.db"):
    with sgp.Store(folder / store) as opened:
        return {key: opened.get(key) for key in opened.keys()}  # noqa: SIM118


def assert_same(some, others):
    assert some.keys() == others.keys()
    for key, model in some.items():
        assert model.to_bytes() == others[key].to_bytes()


def test_a_table_of_keys_becomes_a_store(folder, capsys):
    main(words(folder))
    assert "120 rows of 6 keys are learned and saved" in capsys.readouterr().err
    alone = sgp.ContinualGP(
        {"level": sgp.Gaussian(0.3), "alarm": sgp.Bernoulli()}, latents=[sgp.RBF(3.0)],
        inducing=sgp.Adaptive(budget=8), learning=None,
    )  # fmt: skip
    whole = table()
    for begin in range(0, 120, 40):
        part = whole[begin : begin + 40]
        alone.update(part[part["bed"] == "bed 2"].drop(columns="bed"), inputs="hour")
    found = models(folder)["bed 2"]
    assert found.observations == alone.observations
    np.testing.assert_allclose(
        found.predict([4.0], "level").mean, alone.predict([4.0], "level").mean, rtol=1e-9
    )


def test_stores_are_shown_and_predict(folder, capsys):
    main(words(folder))
    capsys.readouterr()
    store = str(folder / "ward.db")
    main(["fleet", "inspect", store, "--most", "2"])
    said = capsys.readouterr().out
    assert "6 keys" in said
    assert "the 2 keys that were changed last" in said
    main(["fleet", "inspect", store, "--key", "bed 3"])
    assert "Bernoulli" in capsys.readouterr().out
    asked = pd.DataFrame({"hour": [1.0, 2.0, 3.0], "bed": ["bed 5", "bed 0", "bed 5"]})
    asked.to_csv(folder / "asked.csv", index=False)
    out = str(folder / "said.csv")
    main(["fleet", "predict", store, str(folder / "asked.csv"), "--key", "bed", "--out", out])
    said = pd.read_csv(out)
    assert said["bed"].tolist() == ["bed 5", "bed 0", "bed 5"]
    model = models(folder)["bed 5"]
    expected = model.predict(asked["hour"].to_numpy()[[0, 2]], "level").mean
    np.testing.assert_allclose(said["level_mean"].to_numpy()[[0, 2]], expected)


def test_a_run_goes_on_after_the_rows_that_were_learned(folder, capsys):
    main(words(folder, store="whole.db"))
    table()[:80].to_csv(folder / "data.csv", index=False)
    main(words(folder))
    table().to_csv(folder / "data.csv", index=False)
    main(words(folder))
    assert "The first 80 rows" in capsys.readouterr().err
    assert_same(models(folder), models(folder, "whole.db"))
    main(words(folder))
    assert_same(models(folder), models(folder, "whole.db"))


KILLED = """
import os, signal, sys
from streamgp.cli import main
from streamgp.store import commit

place, calls, put = int(sys.argv[1]), [], commit._put

def dying(*arguments):
    done = put(*arguments)
    calls.append(done)
    if len(calls) == place:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

commit._put = dying
main(sys.argv[2:])
"""


@pytest.mark.parametrize("place", [1, 3])
def test_a_run_that_is_killed_ends_as_if_nothing_had_happened(folder, place):
    """In the middle of a transaction. At random: `streamgp-lab check store-kills`."""
    main(words(folder, store="whole.db"))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(place), *words(folder)],
        check=False, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    main(words(folder))
    assert_same(models(folder), models(folder, "whole.db"))


def test_a_file_is_followed_through_rotation(folder):
    main(words(folder, store="whole.db"))
    path = folder / "grows.csv"
    table()[:70].to_csv(path, index=False)
    command = [sys.executable, "-m", "streamgp", *words(folder, "--follow", data="grows.csv")]

    def until(rows):
        limit = time.monotonic() + 60
        with sgp.Store(folder / "ward.db") as store:
            while time.monotonic() < limit:
                book = store.offset("streamgp fleet run")
                if book is not None and book["rows"] >= rows:
                    return
                time.sleep(0.05)
        raise AssertionError(f"{rows} rows were not learned")

    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    until(40)
    process.kill()
    process.wait()
    table()[70:80].to_csv(path, index=False, header=False, mode="a")
    path.rename(folder / "grows.csv.1")
    table()[80:].to_csv(path, index=False)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(120)
    process.send_signal(signal.SIGTERM)
    assert "Interrupted. 120 rows of 6 keys" in process.communicate()[1]
    assert process.returncode == 130
    assert_same(models(folder), models(folder, "whole.db"))


def test_rows_of_a_key_that_cannot_be_used_are_left_out(folder, capsys):
    (folder / "ward.toml").write_text(CONFIG.replace("[data]", '[data]\non_error = "skip"'))
    bad = table()
    bad["alarm"] = bad["alarm"].astype(object)
    bad.loc[(bad["bed"] == "bed 4") & (bad["hour"] < 3), "alarm"] = 7
    bad.to_csv(folder / "data.csv", index=False)
    main(words(folder))
    said = capsys.readouterr().err
    assert "Line 6 of" in said
    assert "6 rows left out: 6 without a value in the support of Bernoulli in 'alarm'" in said
    found = models(folder)
    assert found["bed 3"].observations["level"] == 20
    assert 0 < found["bed 4"].observations["level"] < 20


def test_what_cannot_be_run_is_said_so(folder):
    main(words(folder))
    (folder / "ward.toml").write_text(CONFIG.replace("batch = 40", "batch = 20"))
    with pytest.raises(SystemExit, match="the configuration and the key that"):
        main(words(folder))
    (folder / "ward.toml").write_text(CONFIG.replace("batch", "samples = true\nbatch"))
    with pytest.raises(SystemExit, match="Fleets learn batches"):
        main(words(folder, store="other.db"))
    with pytest.raises(SystemExit, match="a store that exists"):
        main(["fleet", "inspect", str(folder / "nothing.db")])
    with sgp.Store(folder / "mine.db") as store:
        store.put("bed 1", sgp.ContinualGP(sgp.Gaussian()))
    (folder / "ward.toml").write_text(CONFIG)
    with pytest.raises(SystemExit, match="has not made"):
        main(words(folder, store="mine.db"))
    pd.DataFrame({"hour": [1.0], "bed": ["nobody"]}).to_csv(folder / "asked.csv", index=False)
    for column, said in (("bed", "keys that have data; got 'nobody'"), ("ward", "without")):
        asked = [str(folder / "ward.db"), str(folder / "asked.csv"), "--key", column]
        with pytest.raises(SystemExit, match=said):
            main(["fleet", "predict", *asked])


def test_a_url_is_shown_without_its_password():
    assert shown("postgresql://me:secret@host/ward?password=secret") == "postgresql://host/ward"
    assert shown("a/ward.db") == "a/ward.db"
