"""The record of speed: entries are kept in order, and every commit once."""

import json

import numpy as np

from streamgp_lab.races.record import bench, workloads


def _entry(commit, date, ratio=1.0):
    ratios = dict.fromkeys(bench.NAMES, ratio)
    return {"commit": commit, "date": date, "version": "0.2.0", "ratios": ratios}


def test_a_commit_takes_the_place_of_its_earlier_entry():
    entries = [_entry("b", "2026-02"), _entry("c", "2026-03", 3.0)]
    entries = bench.added(bench.added(entries, _entry("a", "2026-01")), _entry("c", "2026-03", 2.0))
    assert [entry["commit"] for entry in entries] == ["a", "b", "c"]
    assert entries[-1]["ratios"]["import"] == 2.0


def test_the_least_of_several_processes_counts():
    runs = [_entry("a", "2026-01", ratio) for ratio in (3.0, 2.0)]
    del runs[1]["ratios"]["fleet, 100 keys"]
    ratios = bench.combined(runs)["ratios"]
    assert ratios["import"] == 2.0
    assert ratios["fleet, 100 keys"] == 3.0


def test_what_a_commit_could_not_do_is_left_open():
    entries = [_entry("a", "2026-01"), _entry("b", "2026-02")]
    del entries[0]["ratios"]["fleet, 100 keys"]
    table, _ = bench.report(entries).parts
    assert table.rows[-1][1:] == ["–", "1"]


def test_the_record_of_the_repository_can_be_read():
    entries = bench.read(bench.RECORD)
    assert entries == sorted(entries, key=lambda entry: entry["date"])
    assert all(set(entry["ratios"]) <= set(bench.NAMES) for entry in entries)


def test_every_workload_runs(monkeypatch):
    monkeypatch.setattr(workloads, "_REPEATS", 1)
    found = workloads.measured()
    assert set(found["ratios"]) == set(bench.NAMES)
    assert all(ratio > 0 for ratio in found["ratios"].values())
    json.dumps(found)


def test_the_yardstick_is_numpy_alone():
    assert "streamgp" not in workloads.yardstick.__code__.co_names
    assert np.isfinite(workloads._least(workloads.yardstick))
