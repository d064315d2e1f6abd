"""The race of rows over time: every topic on few rows, bars, tables, and other versions."""

import math

import numpy as np
import pytest

import streamgp as sgp
from streamgp.errors import ConfigurationError
from streamgp_lab.progress import bar
from streamgp_lab.races import figures
from streamgp_lab.races.benchmark import Settings
from streamgp_lab.races.figures import Bar
from streamgp_lab.races.over_time import bench, files, joining, million, speed, traps
from streamgp_lab.races.topics import Topics

pytestmark = pytest.mark.usefixtures("unchecked")
TOPICS = [*bench.TOPICS.topics, *bench.TOPICS.longest]


@pytest.mark.parametrize("topic", TOPICS, ids=[topic.name for topic in TOPICS])
def test_every_topic_measures_what_has_bars(topic, monkeypatch):
    monkeypatch.setattr(figures, "_RUNS", 2)
    monkeypatch.setattr(traps, "TRAPS", traps.TRAPS[-2:])
    monkeypatch.setattr(joining, "STREAMS", joining.STREAMS[::3])
    module = {"speed": speed, "files": files, "traps": traps, "joining": joining}
    found = module.get(topic.name, million).measure(0.01)
    assert all(math.isfinite(value) for value in found.values())
    assert found.keys() <= {each.figure for each in topic.bars}
    if topic.name not in ("traps", "joining"):
        assert len(found) == len(topic.bars)
    if topic.name == "speed":
        assert all(value > 0 for value in found.values())


def test_python_calls_and_files_of_the_package_are_counted():
    def own():
        return _nothing()

    assert speed.passed(own, 3) == (2.0, 0)
    assert speed.passed(lambda: sgp.fixed(1.0), 3)[1] == 1


def _nothing():
    pass


def test_a_trap_is_as_long_as_it_says():
    trap = traps.Trap("still, then constant", still=4)
    _, y, held = traps.stream(trap, 0, 50)
    assert held.sum() == 10
    assert np.abs(y[~held][:4]).max() < 0.01 < np.abs(y[~held][4])
    _, plain, _ = traps.stream(traps.Trap("nothing"), 0, 50)
    _, larger, _ = traps.stream(traps.Trap("a step", steps=True), 0, 50)
    np.testing.assert_allclose(larger[:25], plain[:25])
    np.testing.assert_allclose(larger[25:], 100 * plain[25:])


def test_a_model_that_is_as_good_offline_loses_nothing():
    whole = traps.Trap("all at once", first=1000)
    assert abs(traps.worse(whole, 0, rows=60)) < 0.05


def test_what_is_not_joined_loses_nothing(monkeypatch):
    monkeypatch.setattr(joining, "_MORE", 1)
    same, whole = joining.beside(joining.STREAMS[0], 50)
    assert same == whole
    monkeypatch.setattr(joining, "_MORE", 10)
    (crowded,) = (each for each in joining.STREAMS if each.about == "rough, crowded")
    joined, whole = joining.beside(crowded, 20)
    assert joined.of_f > whole.of_f
    assert whole.determined > 20


def test_bars():
    ours, theirs = {"ms": 2.0, "bytes": 90.0}, {"ms": 8.0}
    assert str(Bar("bytes", 100)) == "at most 100"
    assert str(Bar("ms", 1 / 3, is_ratio=True)) == "at most 1/3"
    assert Bar("bytes", 100).claim(ours, {}).holds is True
    assert Bar("bytes", 80).claim(ours, {}).holds is False
    ratio = Bar("ms", 1 / 3, is_ratio=True).claim(ours, theirs)
    assert (ratio.holds, ratio.measured) == (True, "1/4")
    assert Bar("ms", 1 / 5, is_ratio=True).claim(ours, theirs).holds is False
    assert Bar("ms", 1 / 5, is_ratio=True).claim(ours, {}).holds is None


def test_versions_take_turns_and_medians_are_reported(monkeypatch, tmp_path):
    asked = []

    def run(self, topic, share, seed, source):
        asked.append((topic.name, source))
        return {bar.figure: float(len(asked)) for bar in topic.bars}

    monkeypatch.setattr(Topics, "run", run)
    settings = Settings(tmp_path, 3, 0.5, tmp_path / "old", only=("speed", "joining"))
    with bar("over_time") as line:
        *_, report = bench.BENCHMARK.measure(settings, line)
    old = settings.against
    assert asked == [("speed", None), ("speed", old)] * 3 + [("joining", None)]
    table, claims, joined, _ = report.parts
    assert table.rows[0] == ["first update of 300 rows, CPU ms", "4", "3", "at most 1/5"]
    assert claims[0].measured == "1/1.33"
    assert joined.heading == ["", "this version", "must be"]


def test_a_topic_runs_in_a_process_of_its_own(tmp_path):
    found = bench.TOPICS.run(bench.TOPICS.topics[1], 0.003, 0, None)
    assert found.keys() == {each.figure for each in files.BARS}
    (tmp_path / "src" / "streamgp").mkdir(parents=True)
    (tmp_path / "src" / "streamgp" / "__init__.py").touch()
    with pytest.raises(ConfigurationError, match="can do files"):
        bench.TOPICS.run(bench.TOPICS.topics[1], 0.003, 0, tmp_path)
