"""Every experiment of the paper runs with a share of its data, and its report is written."""

import json
from dataclasses import replace

import numpy as np
import pytest

from streamgp.errors import StreamGPError
from streamgp_lab.cli import main
from streamgp_lab.datasets import files
from streamgp_lab.experiments import outages, overview, silent
from streamgp_lab.experiments.catalogue import EXPERIMENTS
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.experiments.protocol import run
from streamgp_lab.experiments.summary import claims, report, tables
from streamgp_lab.reporting.page import index
from streamgp_lab.reporting.report import write
from streamgp_lab.scores import Score, pooled, score

# The share of its data, and the methods that are fast enough.
REDUCED = {
    "streaming": (0.2, ("streamgp", "streaming sparse GP", "the paper's algorithm")),
    "overlapping": (0.2, ("streamgp",)),
    "incremental": (0.2, ("streamgp",)),
    "currency": (0.15, ("streamgp",)),
    "banana": (0.05, ("streamgp",)),
    "synchronous": (0.2, ("streamgp",)),
    "asynchronous": (0.2, ("streamgp", "infinite-horizon GP")),
    "mocap": (0.4, ("streamgp",)),
    "solar": (0.06, ("streamgp", "infinite-horizon GP")),
    "horizon": (0.3, ("streamgp", "infinite-horizon GP")),
    "ssgp": (1.0, ("streamgp", "streamgp, M = 3t", "exact GP")),
    "heterogeneous": (0.2, ("streamgp",)),
    "flights": (0.25, ("streamgp",)),
    "silent": (0.5, ("streamgp", "streamgp, three functions", "offline model")),
    "outages": (0.3, ("streamgp", "independent GPs")),
    "level": (0.5, ("streamgp", "streamgp, level of the first batch")),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_and_its_report_is_written(name, tmp_path, unchecked):
    share, kept = REDUCED[name]
    experiment = EXPERIMENTS[name].only(*kept)
    if name == "heterogeneous":  # the picture of the gap needs a second method
        experiment = replace(experiment, pictures=dict(list(experiment.pictures.items())[:1]))
    outcome = run(experiment, Options(seed=2, share=share))
    assert not outcome.ours.reason
    for channel in outcome.problem.channels:
        first, now = outcome.ours.oldest(channel)
        assert np.isfinite([first, now, outcome.ours.final(channel).nlpd]).all()
    for method, made in outcome.runs.items():
        assert bool(made.reason) == (experiment.methods[method].make is None), made.reason
    if outcome.problem.single is not None:
        learned = len(outcome.problem.everything()["y"][1])
        warm = sum(len(b["y"][1]) for b in outcome.problem.train[: outcome.problem.single])
        assert len(outcome.ours.singles["y"]) == learned - warm
    write(report([outcome]), tmp_path)
    page = index(tmp_path, "A title").read_text()
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".json", ".png", ".svg", ".html"}
    assert all(path.stat().st_size > 500 for path in tmp_path.iterdir())
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert set(record["seeds"][0]) == set(experiment.methods)
    for table in tables([outcome]):
        assert len({len(row) for row in table.rows} | {len(table.heading)}) == 1
        assert table.caption.split(":")[0] in page
    assert claims([outcome])


def test_streaming_reaches_the_offline_and_the_exact_model():
    """What the tables claim, on half the data and over seeds, because single batches are small."""
    gaps, drifts, covered = [], [], []
    experiment = EXPERIMENTS["streaming"].only("streamgp", "exact GP")
    for seed in range(3):
        outcome = run(experiment, Options(seed, 0.5))
        gaps.append(outcome.ours.final("y").nlpd - outcome.runs["exact GP"].final("y").nlpd)
        first, now = outcome.ours.oldest("y")
        drifts.append(now - first)
        covered.append(outcome.ours.final("y").coverage)
    assert np.mean(gaps) < 0.02
    assert np.mean(drifts) < 0.02
    assert 0.93 < np.mean(covered) < 0.97


def test_a_silent_channel_is_told_by_the_others():
    """Its weights are learned while it has data; later the other channels say where it is."""
    outcome = run(EXPERIMENTS["silent"].only("streamgp"), Options(0))
    spoken = [True] * 2 + [False] * 4
    assert ["silent" in batch for batch in outcome.problem.train] == spoken
    assert outcome.ours.gap["silent"].error < 1.5 * silent.NOISE
    cells = tables([outcome])[-2].rows[0]
    assert [bool(cell) for cell in cells[1:]] == spoken


def test_outages_are_whole_and_apart():
    for seed in range(5):
        missing = outages.outages(202, np.random.default_rng(seed))
        assert missing.sum() == 96
        assert not missing[:24].any()
        assert not missing[-1]
        edges = np.flatnonzero(np.diff(missing.astype(int)))
        assert set(edges[1::2] - edges[::2]) == {8}
    problem = outages.problem(Options())
    x, y = problem.everything()["unemployment"]
    assert len(x) == 106
    assert outages.interpolation(problem) < y.std()


def test_a_forecast_returns_to_a_level_that_is_learned():
    ours, other = "streamgp", "streamgp, level of the first batch"
    outcome = run(EXPERIMENTS["level"].only(ours, other, "exact GP"), Options(0, 0.5))
    gap = {name: made.gap["y"] for name, made in outcome.runs.items()}
    assert gap[ours].nlpd < gap[other].nlpd - 0.5
    assert gap[ours].nlpd < gap["exact GP"].nlpd + 0.05
    assert gap[ours].coverage > 0.95
    learned, first, _ = (float(row[-2]) for row in tables([outcome])[-1].rows)
    assert 316 < first < learned < 372  # the levels before and after


def test_scores_of_parts_are_those_of_the_whole(sine):
    x, y, model = sine
    whole = score(model.predict(x), y)
    parts = pooled([score(model.predict(x[i::3]), y[i::3]) for i in range(3)])
    np.testing.assert_allclose(parts, whole)


def test_the_papers_figure_is_a_sum_with_unit_noise(sine):
    x, y, model = sine
    prediction = model.predict(x)
    total = 1 + prediction.latent_variance
    wanted = 0.5 * (np.log(2 * np.pi * total) + (y - prediction.mean) ** 2 / total)
    np.testing.assert_allclose(score(prediction, y).printed, wanted.sum() / 1000)


@pytest.fixture(scope="module")
def sine():
    import streamgp as sgp

    x = np.linspace(0, 6, 30)
    y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=30)
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(x, y)
    return x, y, model


def test_shares_of_wrong_classes_are_averaged():
    parts = [Score(10, 1.0, 0.5, np.nan, 0.1), Score(30, 2.0, 0.1, np.nan, 0.2)]
    assert pooled(parts).error == pytest.approx(0.2)


def test_a_motion_file_gives_its_joints(tmp_path):
    path = tmp_path / "walk.bvh"
    path.write_text(
        "HIERARCHY\nROOT Hips\n{\nCHANNELS 3 Xposition Yposition Zposition\nJOINT LeftHand\n{\n"
        "CHANNELS 2 Zrotation Yrotation\n}\n}\nMOTION\nFrames: 2\nFrame Time: 0.01\n"
        "1 2 3 4 5\n6 7 8 9 10\n"
    )
    found = files.motion(path, {"wrist": ("LeftHand", "Yrotation")})
    np.testing.assert_array_equal(found["wrist"], [5, 10])
    with pytest.raises(StreamGPError, match="RightHand"):
        files.motion(path, {"wrist": ("RightHand", "Yrotation")})


def test_data_that_packages_ship():
    x, y = files.banana()
    assert x.shape == (5300, 2)
    assert set(y) == {0.0, 1.0}
    days, rates = files.exchange_rates("2015-01-01", "2018-12-31")
    assert len(days) == len(rates) > 1000
    assert 0.7 < rates.min() < rates.max() < 1.1
    assert files.walking().shape == (100, 3)
    quarters, series = files.economy()
    assert quarters[0] == 1959.25
    assert {len(y) for y in series.values()} == {len(quarters)} == {202}
    assert set(series["recession"]) == {0.0, 1.0}
    with pytest.raises(StreamGPError, match="no_such_package"):
        files.shipped("no_such_package", "data.csv")


def test_the_command_lists_and_refuses(capsys, tmp_path):
    main(["reproduce", "--list"])
    assert "banana" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="name of an experiment"):
        main(["reproduce", "nonsense", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="seeds and jobs of at least 1"):
        main(["reproduce", "mocap", "--seeds", "0"])
    with pytest.raises(SystemExit, match="folder"):
        main(["reproduce", "mocap", "--data", str(tmp_path / "none")])


def test_the_command_runs_and_writes(capsys, tmp_path):
    main(["reproduce", "horizon", "--share", "0.3", "--out", str(tmp_path)])
    assert "Two classes and one input" in capsys.readouterr().out
    assert "horizon.png" in (tmp_path / "index.html").read_text()
    assert "| horizon | 1 |" in (tmp_path / "overview.md").read_text()


def test_the_overview_has_the_numbers_of_every_experiment(tmp_path):
    """Read back from files, they are those of the runs; several seeds give the mean and worst."""
    experiment = EXPERIMENTS["ssgp"].only("streamgp", "exact GP")
    outcomes = [run(experiment, Options(seed)) for seed in range(2)]
    write(report(outcomes, cpu=7.0), tmp_path)
    ours, exact = (
        np.array([o.runs[name].final("y").nlpd for o in outcomes]) for name in experiment.methods
    )
    first, now = np.mean([o.ours.oldest("y") for o in outcomes], axis=0)
    text = overview.write(tmp_path).read_text()
    cells = f"| ssgp | 2 | {ours.mean():.3f} |  | {exact.mean():.3f} |  |  |"
    assert f"{cells} {first:.3f} → {now:.3f} |" in text
    assert f"{(ours - exact).mean():+.4f} ({(ours - exact).max():+.4f})" in text
