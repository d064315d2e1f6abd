"""The command line: files in, files out, and a run that may be broken off at any moment."""

import io
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.cli import config, main, run, tables
from streamgp_lab.checks import kills

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
batch = 16
snapshot = 0
"""


def frame(rows=60):
    generator = np.random.default_rng(0)
    hours = np.arange(rows) / 4
    level = np.sin(hours) + 0.3 * generator.normal(size=rows)
    alarm = np.where(generator.uniform(size=rows) < 0.3, np.nan, level > 0)
    return pd.DataFrame({"hour": hours, "level": level, "alarm": alarm})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG)
    frame().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def command(folder, *more, data="data.csv", model="run.sgp"):
    source = data if data == "-" else str(folder / data)
    where = ("--model", str(folder / model))
    main(["run", str(folder / "run.toml"), source, *where, *more])
    return sgp.load(folder / model)


def test_a_file_streams_into_a_model(folder, capsys):
    model = command(folder, "--predictions", str(folder / "said.csv"))
    assert model.observations == {"level": 60, "alarm": int(frame()["alarm"].notna().sum())}
    said = pd.read_csv(folder / "said.csv")
    assert len(said) == sum(model.observations.values())
    level = said[said["channel"] == "level"]
    assert level["predicted"].isna().sum() == 16  # nothing was known before the first batch
    later = level.dropna()
    assert later["predicted"].between(later["lower"], later["upper"]).all()
    assert np.isfinite(later["log_predictive"]).all()
    main(["inspect", str(folder / "run.sgp")])
    shown = capsys.readouterr().out
    assert "Bernoulli" in shown
    assert "60" in shown


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "-"])
def test_every_format_is_the_same_stream(folder, kind, monkeypatch):
    table = frame()
    if kind == "jsonl":
        table.to_json(folder / "data.jsonl", orient="records", lines=True)
    elif kind == "parquet":
        table.to_parquet(folder / "data.parquet", row_group_size=7)
    else:
        monkeypatch.setattr("sys.stdin", io.StringIO(table.to_csv(index=False)))
    other = command(folder, data=kind if kind == "-" else f"data.{kind}", model="other.sgp")
    same = command(folder)
    precision = same.state.site.precision
    np.testing.assert_allclose(other.state.site.precision, precision, rtol=1e-9, atol=1e-9)


def test_samples_one_by_one(folder):
    text = CONFIG.replace("batch = 16", "batch = 16\nsamples = true")
    (folder / "run.toml").write_text(text)
    model = command(folder)
    assert repr(model).count(f"{sum(model.observations.values())} updates") == 1


def test_an_interrupted_run_goes_on(folder, monkeypatch, capsys):
    whole = command(folder, "--predictions", str(folder / "whole.csv"), model="whole.sgp")
    take, calls = run.Run.take, []

    def interrupted(self, piece):
        calls.append(piece)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return take(self, piece)

    monkeypatch.setattr(run.Run, "take", interrupted)
    arguments = ("--predictions", str(folder / "part.csv"))
    with pytest.raises(SystemExit) as stopped:
        command(folder, *arguments, model="part.sgp")
    assert stopped.value.code == 130
    assert sgp.load(folder / "part.sgp").notes["rows"] == 32
    with open(folder / "part.csv", "a") as file:
        file.write("written after the snapshot\n")
    part = command(folder, *arguments, model="part.sgp")
    assert len(calls) == 4
    assert (folder / "part.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert part.to_bytes() == whole.to_bytes()


def test_a_killed_run_ends_as_if_nothing_had_happened(tmp_path):
    """More kills: python -m streamgp_lab.checks.kills."""
    quick = kills.CONFIG.replace("learning = { rounds = 1 }", "learning = false")
    kills.compare(tmp_path, 2, samples=False, rows=150, seed=1, config=quick)


def test_another_configuration_does_not_go_on(folder, capsys):
    command(folder)
    (folder / "run.toml").write_text(CONFIG.replace("batch = 16", "batch = 17"))
    with pytest.raises(SystemExit, match="--restart"):
        command(folder)
    assert command(folder, "--restart").notes["rows"] == 60


def test_predictions_and_a_picture(folder, capsys):
    command(folder)
    capsys.readouterr()
    frame(5)[["hour"]].to_csv(folder / "hours.csv", index=False)
    arguments = ["predict", str(folder / "run.sgp"), str(folder / "hours.csv")]
    main(arguments)
    wide = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(wide["hour"]) == list(frame(5)["hour"])
    np.testing.assert_allclose(wide["alarm_0"] + wide["alarm_1"], 1.0)
    main([*arguments, "--channel", "level", "--out", str(folder / "said.parquet")])
    narrow = pd.read_parquet(folder / "said.parquet")
    np.testing.assert_allclose(narrow["level_mean"], wide["level_mean"])
    main(["plot", str(folder / "run.sgp"), "--out", str(folder / "seen.png")])
    assert (folder / "seen.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (CONFIG.replace('"Bernoulli"', '"Bernouli"'), "Bernoulli"),
        (CONFIG.replace("noise = 0.3", "nose = 0.3"), "nose"),
        (CONFIG.replace("noise = 0.3", "noise = -1"), "positive"),
        (CONFIG.replace("[stream]", "[streams]"), "streams"),
        (CONFIG.replace("batch = 16", "batch = 0"), "batch"),
        (CONFIG.replace("batch = 16", "rows = 16"), "rows"),
        (CONFIG.replace('inputs = "hour"', ""), "inputs"),
        (CONFIG.replace('inputs = "hour"', 'inputs = "minute"'), "minute"),
        (CONFIG.replace("budget = 12", "budget = 0"), "budget"),
        ("[channels", "TOML"),
    ],
)
def test_a_wrong_configuration_is_a_sentence(folder, wrong, said, capsys):
    (folder / "run.toml").write_text(wrong)
    with pytest.raises(SystemExit, match=said) as stopped:
        command(folder, "--predictions", str(folder / "said.csv"))
    assert "\n" not in str(stopped.value)
    assert not (folder / "run.sgp").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.txt", "hour,level\n", "--format"),
        ("data.jsonl", '{"hour": 1}\n[2]\n', "line 2"),
        ("data.jsonl", "hour,level\n", "line 1"),
        ("data.parquet", "hour,level\n", "Parquet"),
        ("data.csv", "", "table"),
        ("data.csv", "hour,level,alarm\nsoon,1,1\n", "ISO 8601"),
        ("data.csv", "hour,level,alarm\n1,2,3\n", "Bernoulli"),
    ],
)
def test_wrong_data_are_a_sentence(folder, name, content, said, capsys):
    (folder / name).write_text(content)
    with pytest.raises(SystemExit, match=said):
        command(folder, data=name)
    assert not (folder / "run.sgp").exists()


def test_the_examples_of_the_help_are_a_configuration(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = capsys.readouterr().out
    lines = [
        line for line in shown.splitlines() if line.startswith("    ") and "streamgp" not in line
    ]
    begin = next(i for i, line in enumerate(lines) if "[channels]" in line)
    (tmp_path / "help.toml").write_text("\n".join(lines[begin:]))
    read = config.read(tmp_path / "help.toml")
    assert set(read.build().channels) == set(read.channels) == {"temperature", "sky"}


def test_pieces_do_not_depend_on_where_one_begins(tmp_path):
    path = tmp_path / "data.csv"
    frame().to_csv(path, index=False)
    whole = [*tables.pieces(str(path), 7, [])]
    later = [*tables.pieces(str(path), 7, [], skip=14)]
    assert [len(piece) for piece in whole] == [7] * 8 + [4]
    for one, other in zip(whole[2:], later, strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert Path(path).exists()


def test_clocks_that_change_within_a_file(folder):
    """Written with offsets, the hours around summer time have two of them."""
    hours = pd.date_range("2024-03-31 00:00", periods=60, freq="15min", tz="Europe/Madrid")
    frame().assign(hour=hours).to_csv(folder / "data.csv", index=False)
    text = (folder / "data.csv").read_text()
    assert "+01:00" in text
    assert "+02:00" in text
    model = command(folder)
    assert model.observations["level"] == 60
    assert np.ptp(model.inducing_points[0]) <= 59 * 15 * 60  # seconds: no hour was lost or gained


def test_times_that_are_not_all_times(folder):
    frame().assign(hour=["2024-03-31 00:00", "soon"] * 30).to_csv(folder / "data.csv", index=False)
    with pytest.raises(SystemExit, match="ISO 8601"):
        command(folder)
