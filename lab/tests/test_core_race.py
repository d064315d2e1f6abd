"""The race of the compiled core: cases, tables, bars, and other revisions."""

import subprocess

import pytest

from streamgp.errors import ConfigurationError
from streamgp_lab.races import environments
from streamgp_lab.races.core import bench, work


@pytest.fixture
def brief(monkeypatch):
    """Few rows, each kind of work once."""
    for name, value in {"_LEAST": 1, "_ENOUGH": 0.0, "_ROWS": 50, "SIZES": (6, 8)}.items():
        monkeypatch.setattr(work, name, value)


@pytest.mark.usefixtures("brief")
def test_every_case_is_measured_and_reported():
    core = work.core([20, 40])
    assert all(seconds >= 0 for seconds in core.values())
    cases = {work.case(spacing, count) for spacing in work.SPACINGS for count in (20, 40)}
    assert cases < set(core)
    core = dict.fromkeys(core, 1e-3)
    beside, by_size = bench.report([20, 40], core, {}).parts
    assert [row[1] for row in beside.rows] == ["1"] * 4
    assert [row[1:] for row in by_size.rows] == [["1,000", "1,000"]] * 8


def test_the_bars_are_ratios():
    cases = {work.case(spacing, 100): 1.0 for spacing in work.SPACINGS}
    slower = dict.fromkeys(cases, 20.0)
    assert [claim.holds for claim in bench.claims([100], cases, slower)] == [False, True]


def test_the_least_of_several_processes_counts():
    assert bench._least([{"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 3.0}]) == {"a": 1.0, "b": 1.0}


def test_a_version_without_such_passes_is_refused(tmp_path):
    (tmp_path / "src" / "streamgp").mkdir(parents=True)
    (tmp_path / "src" / "streamgp" / "__init__.py").touch()
    with pytest.raises(ConfigurationError, match="sums over pairs"):
        bench._run("chain", [100], tmp_path)


def test_a_revision_is_checked_out_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "REPOSITORY", tmp_path)
    package = tmp_path / "src" / "streamgp"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("old = True\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    (package / "__init__.py").write_text("old = False\n")
    with environments.checkout("HEAD") as source:
        assert (source / "src" / "streamgp" / "__init__.py").read_text() == "old = True\n"
    assert not source.exists()
    with environments.checkout(str(tmp_path)) as source:
        assert source == tmp_path
    with environments.checkout(None) as source:
        assert source is None
    with pytest.raises(ConfigurationError, match="revision"), environments.checkout("nothing"):
        pass
