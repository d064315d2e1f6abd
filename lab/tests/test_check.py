"""`streamgp-lab check`: the list, the options, and checks that are short enough for tests."""

import subprocess
import sys

import pytest

import streamgp as sgp
from streamgp_lab.checks import coverage, large, soak, store_kills, wild
from streamgp_lab.cli import check, main
from streamgp_lab.cli.main import CHECKS, QUICK


def test_the_list_has_every_check(capsys):
    for arguments in (["check", "--list"], ["check"]):
        main(arguments)
        printed = capsys.readouterr().out
        assert all(name in printed for name in CHECKS)


def test_every_check_can_be_run():
    assert set(QUICK) <= set(CHECKS)
    for name in CHECKS:
        with pytest.raises(SystemExit) as stopped:
            main(["check", name, "--help"])
        assert stopped.value.code == 0


def test_options_reach_the_check(monkeypatch):
    calls = []
    monkeypatch.setattr(check, "run", lambda name, **settings: calls.append((name, settings)))
    main(["check", "pruning", "--seeds", "2"])
    main(["check", "soak", "--seconds", "3", "--only", "4", "5"])
    main(["check", "all"])
    assert calls[0] == ("pruning", {"seeds": 2})
    soaked = {"updates": None, "seconds": 3.0, "seed": 0, "only": [4, 5]}
    assert calls[1] == ("soak", soaked)
    assert [name for name, _ in calls[2:]] == list(QUICK)


def test_a_module_is_a_command():
    words = [sys.executable, "-m", "streamgp_lab.checks.soak", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "streamgp-lab check soak --seconds 600" in done.stdout


@pytest.mark.filterwarnings("ignore::streamgp.errors.EpochWarning")
def test_a_soak_ends_with_its_result(capsys):
    main(["check", "soak", "--updates", "3", "--only", "0", "0"])
    assert "There were no failures." in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
@pytest.mark.parametrize("engine", ["dense", "chain"])
def test_stores_survive_a_few_kills(tmp_path, engine):
    killed = store_kills.compare(tmp_path, 6, engine=engine, rows=300, keys=8, seed=1)
    assert killed > 0


def test_a_store_that_lost_something_is_noticed(tmp_path):
    (tmp_path / "run.toml").write_text(store_kills.settings("dense"))
    store_kills.table(150, 8, 0).to_csv(tmp_path / "data.csv", index=False)
    states = store_kills.history(tmp_path)
    store_kills.learn(tmp_path, "killed.db")
    assert not store_kills.differences(tmp_path, states)
    with sgp.Store(tmp_path / "killed.db") as store, store.transaction() as change:
        change.put("key 1", sgp.from_bytes(states[1]["key 1"]))
        change.delete("key 2")
    wrong = store_kills.differences(tmp_path, states)
    assert [words.split(":")[0] for words in sorted(wrong)] == ["key 1", "key 2"]


def test_a_large_batch_is_compared_with_some_of_its_rows(capsys, monkeypatch):
    monkeypatch.setattr(large, "_FEW", 300)
    main(["check", "large", "--rows", "1500"])
    table = capsys.readouterr().out.split("**large**")[1]
    rows = [line.split("|")[1:-1] for line in table.strip().splitlines()[2:]]
    assert [row[0].strip() for row in rows] == ["Gaussian", "Bernoulli", "Poisson"]
    assert all(float(row[-2]) < float(row[-1]) + 0.02 for row in rows)


def test_a_failure_gives_the_exit_status(monkeypatch, capsys):
    def fails(*_):
        raise FloatingPointError("not a number")

    monkeypatch.setattr(soak, "_update", fails)
    monkeypatch.setattr(wild, "FAMILIES", {"real": soak.FAMILIES["real"]})
    for name in ("soak", "wild"):
        with pytest.raises(SystemExit) as stopped:
            main(["check", name, *["--updates", "1"] * (name == "soak")])
        assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert "real: Gaussian | 1 | failed" in printed.out
    assert "streamgp-lab check soak --seed 0 --only 0 0" in printed.err


def test_intervals_contain_held_out_data():
    assert 0.9 < coverage.family("Gaussian", rows=300) < 1.0
