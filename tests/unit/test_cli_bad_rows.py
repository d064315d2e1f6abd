"""Cells that cannot be used: the command stops at the first and names it, or leaves rows out."""

import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import streamgp as sgp
from streamgp.cli import exits, main
from streamgp.cli.bookkeeping import Bookkeeping
from streamgp.sources import AbstractFeed, Messages, urls

CONFIG = """
[channels]
level = { kind = "Gaussian", noise = 0.3 }
alarm = "Bernoulli"
visits = "Poisson"

[data]
inputs = "time"

[model]
latents = 1
inducing = { kind = "Adaptive", budget = 8 }
learning = false

[stream]
batch = 10
snapshot = 0
"""
SKIP = '[data]\non_error = "skip"'
START = pd.Timestamp("2024-01-20")


def frame(rows=30):
    hours = np.arange(rows)
    return pd.DataFrame(
        {
            "time": START + pd.to_timedelta(12 * hours, "h"),
            "level": np.sin(hours / 3),
            "alarm": hours % 2,
            "visits": hours % 4,
        }
    ).astype(object)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG)
    return tmp_path


def configure(folder, *changes):
    text = CONFIG
    for old, new in changes:
        text = text.replace(old, new)
    (folder / "run.toml").write_text(text)


def command(folder, *more, data="data.csv", model="run.sgp"):
    main(
        ["run", str(folder / "run.toml"), str(folder / data), "--model", str(folder / model), *more]
    )
    return sgp.load(folder / model)


def refused(folder, *more, data="data.csv"):
    with pytest.raises(SystemExit) as stopped:
        command(folder, *more, data=data)
    assert "\n" not in str(stopped.value)
    return str(stopped.value)


def rows_of(folder):
    path = folder / "run.sgp"
    return Bookkeeping.of(sgp.load(path)).rows if path.exists() else 0


def write(folder, table, **options):
    table.to_csv(folder / "data.csv", index=False, **options)


# -- dates ---------------------------------------------------------------------------------------


def test_dates_in_another_form_are_not_guessed(folder):
    table = frame().assign(time=[START + pd.Timedelta(n, "h") for n in range(0, 360, 12)])
    table["time"] = table["time"].dt.strftime("%d/%m/%Y %H:%M")
    write(folder, table)
    said = refused(folder)
    assert "got '20/01/2024 00:00' in line 2 of" in said
    assert 'Put `format = "%d/%m/%Y %H:%M"` into [data]' in said
    assert not (folder / "run.sgp").exists()


def test_what_cannot_be_told_is_not_told(folder):
    write(folder, frame(3).assign(time=["01/02/2024", "02/02/2024", "03/02/2024"]))
    said = refused(folder)
    assert '`format = "%d/%m/%Y"` or `format = "%m/%d/%Y"`' in said
    write(folder, frame(3).assign(time=["week 7", "week 8", "week 9"]))
    assert 'name it in [data]: `format = "%d/%m/%Y %H:%M"`' in refused(folder)


@pytest.mark.parametrize("cell", ["2024/01/22", "20240122", "2024-01", "now", "2024-02-31", "7"])
def test_only_dates_in_iso_8601_are_read(folder, cell):
    table = frame()
    table["time"] = table["time"].astype(str)
    table.loc[17, "time"] = cell
    write(folder, table)
    said = refused(folder)
    assert "a date in ISO 8601" in said
    assert f"got '{cell}' in line 19" in said
    assert rows_of(folder) == 10  # the batch before it


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_format_is_followed(folder, kind):
    configure(folder, ("[data]", '[data]\nformat = "%d%m%Y"'))
    table = frame(20).assign(time=pd.date_range("2024-01-01", periods=20))
    written = table.assign(time=table["time"].dt.strftime("%d%m%Y"))  # such as 01012024
    if kind == "csv":
        written.to_csv(folder / "data.csv", index=False)
    else:
        written.to_json(folder / "data.jsonl", orient="records", lines=True)
    model = command(folder, data=f"data.{kind}")
    write(folder, table)
    configure(folder)
    expected = command(folder, model="iso.sgp")
    assert model.axes == expected.axes
    np.testing.assert_allclose(model.inducing_points[0], expected.inducing_points[0])
    written[["time"]].to_csv(folder / "asked.csv", index=False)
    out = folder / "said.csv"
    main(["predict", str(folder / "run.sgp"), str(folder / "asked.csv"), "--out", str(out)])
    assert pd.read_csv(out)["time"].tolist() == table["time"].astype(str).str[:10].tolist()


def test_a_cell_that_does_not_have_the_format_is_named(folder):
    configure(folder, ("[data]", '[data]\nformat = "%d.%m.%Y %H:%M"'))
    table = frame()
    table["time"] = [time.strftime("%d.%m.%Y %H:%M") for time in table["time"]]
    table.loc[12, "time"] = "2024-01-26"
    write(folder, table)
    assert "of the form '%d.%m.%Y %H:%M' in column 'time'; got '2024-01-26' in line 14" in refused(
        folder
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('format = "dd/mm/yyyy"', "with %Y, %m, %d"),
        ('format = "%H:%M"', "with %Y, %m, %d"),
        ('format = { day = "%d/%m/%Y" }', "by input column"),
        ('on_error = "ignore"', '"stop" or "skip"'),
        ("on_error = true", '"stop" or "skip"'),
    ],
)
def test_unknown_settings_are_refused(folder, line, said):
    write(folder, frame())
    configure(folder, ("[data]", f"[data]\n{line}"))
    assert said in refused(folder)


# -- the first bad row ---------------------------------------------------------------------------


BAD = [
    ("level", "1,5", "a number in column 'level'; got '1,5' in line 17"),
    ("level", "inf", "a finite number, below 1e+100 in size, in column 'level'"),
    ("alarm", "2", "a value in the support of Bernoulli in column 'alarm'"),
    ("visits", "-1", "a value in the support of Poisson in column 'visits'"),
    ("visits", "many", "a number in column 'visits'; got 'many' in line 17"),
    ("time", "", "a value in column 'time'; got an empty cell in line 17"),
]


@pytest.mark.parametrize(("column", "cell", "said"), BAD)
def test_the_first_bad_row_stops_before_its_batch_is_learned(folder, column, cell, said):
    table = frame()
    table.loc[15, column] = cell
    table.loc[18, "level"] = "later"
    write(folder, table)
    told = refused(folder)
    assert said in told
    assert "in line 17 of" in told
    assert 'with `on_error = "skip"` in [data]' in told
    assert rows_of(folder) == 10
    assert "in line 17 of" in refused(folder)  # lines are those of the file, also after a restart
    write(folder, frame())
    assert command(folder).observations["level"] == 30


def test_lines_are_those_of_the_file(folder):
    """Empty lines and cells over several lines are counted; rows in a batch are not."""
    (folder / "run.toml").write_text(
        '[channels]\nlevel = "Gaussian"\nsky = { kind = "Categorical", classes = 3 }\n'
        '[data]\ninputs = "time"\n[model]\nlearning = false\n[stream]\nbatch = 2\n'
    )
    (folder / "data.csv").write_text(
        'time,level,sky\n1,0.1,dark\n\n2,0.2,"partly\ncloudy"\n   \n3,0.3,"5"" rain"\n4,cold,dark\n'
    )
    assert "got 'cold' in line 8 of" in refused(folder)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2024-01-30,1,1,1,1", "at most 4 cells, as in the header"),
        ('2024-01-30,"1,1,1', "quotes that are closed"),
    ],
)
def test_a_row_that_is_broken_is_named(folder, line, said):
    text = frame(14).to_csv(index=False) + line + "\n"
    (folder / "data.csv").write_text(text)
    told = refused(folder)
    assert said in told
    assert "in line 16" in told
    configure(folder, ("[data]", SKIP))
    assert command(folder).observations["level"] == 14


def test_a_byte_that_is_not_utf_8_is_named(folder):
    text = frame(14).to_csv(index=False).encode() + b"2024-01-30,1 \xb0C,1,1\n"
    (folder / "data.csv").write_bytes(text)
    told = refused(folder)
    assert "text in UTF-8" in told
    assert "in line 16" in told


# -- rows that are left out ----------------------------------------------------------------------


def spoiled():
    """A table with four bad rows, and the rows that are left without them."""
    table, bad = frame(), [3, 8, 15, 22]
    table["time"] = table["time"].astype(str)
    table.loc[bad, ["level", "alarm"]] = [["warm", 1], [0, 7], ["cold", 0], [1, 1]]
    table.loc[22, "time"] = "yesterday"
    table.loc[5, "level"] = np.nan  # missing, which is not bad
    return table, table.drop(index=bad)


def save(table, path):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.astype({"time": str}).map(
            lambda cell: None if isinstance(cell, float) and np.isnan(cell) else str(cell)
        ).to_parquet(path)
    else:
        table.to_json(path, orient="records", lines=True)


@pytest.mark.parametrize(
    ("name", "first"),
    [("data.csv", "Line 5"), ("data.jsonl", "Line 4"), ("data.parquet", "Row 4")],
)
def test_bad_rows_are_left_out_named_and_counted(folder, capsys, name, first):
    configure(folder, ("[data]", SKIP))
    table, good = spoiled()
    save(table, folder / name)
    model = command(folder, data=name)
    said = capsys.readouterr().err
    assert f"{first} of" in said
    assert "is left out: expected a number in column 'level'; got 'warm'" in said
    assert "column 'time'; got 'yesterday'" in said
    assert "4 rows left out: 2 without a number in 'level'" in said
    assert model.observations == {
        "level": int(good["level"].notna().sum()), "alarm": 26, "visits": 26,
    }  # fmt: skip
    np.testing.assert_allclose(float(model.latest.astype("M8[s]").astype(int)), _seconds(good))


def _seconds(table):
    return pd.to_datetime(table["time"], format="ISO8601").max().timestamp()


def test_the_counts_are_the_same_after_a_restart(folder, capsys):
    configure(folder, ("[data]", SKIP))
    table, _ = spoiled()
    write(folder, table)
    whole = command(folder, model="whole.sgp")
    summary = re.search(r"4 rows left out: .*", capsys.readouterr().err)[0]
    write(folder, table[:20])
    command(folder)
    assert "3 rows left out" in capsys.readouterr().err
    write(folder, table)
    part = command(folder)
    assert summary in capsys.readouterr().err
    assert part.to_bytes() == whole.to_bytes()


def test_a_run_that_stopped_goes_on_with_skip(folder):
    table, _ = spoiled()
    write(folder, table.drop(index=[3, 8]))
    refused(folder)
    assert rows_of(folder) == 10
    configure(folder, ("[data]", SKIP))
    assert command(folder).observations["visits"] == 26


def test_many_bad_rows_are_counted(folder, capsys):
    configure(folder, ("[data]", SKIP))
    table = frame(100)
    table.loc[10:69, "level"] = "?"
    write(folder, table)
    assert command(folder).observations["level"] == 40
    said = capsys.readouterr().err
    assert said.count("is left out: expected") == 20
    assert "60 rows left out: 60 without a number in 'level'" in said


def test_a_missing_cell_of_a_channel_is_not_bad(folder, capsys):
    configure(folder, ("[data]", SKIP))
    table = frame()
    table.loc[4:9, "level"] = np.nan
    write(folder, table)
    assert command(folder).observations == {"level": 24, "alarm": 30, "visits": 30}
    assert "left out" not in capsys.readouterr().err


def test_long_tables(folder, capsys):
    (folder / "run.toml").write_text(
        '[channels]\nlevel = "Gaussian"\nsky = { kind = "Categorical", classes = 2 }\n'
        '[data]\ninputs = "time"\nchannel = "sensor"\nvalue = "reading"\non_error = "skip"\n'
        "[model]\nlearning = false\n[stream]\nbatch = 4\n"
    )
    (folder / "data.csv").write_text(
        "time,sensor,reading\n1,level,0.5\n2,sky,clear\n3,level,0.7\n4,sky,dark\n"
        "5,level,clear\n6,rain,1\n7,sky,purple\n8,level,0.9\n9,,1\nten,level,1\n11,sky,dark\n"
    )
    assert command(folder).observations == {"level": 3, "sky": 3}
    said = capsys.readouterr().err
    for line, words in [
        (6, "a number in column 'reading'; got 'clear'"),
        (7, "a channel among ['level', 'sky'] in column 'sensor'; got 'rain'"),
        (8, "one of 2 labels, ['clear', 'dark'], in column 'reading'; got 'purple'"),
        (10, "a value in column 'sensor'; got an empty cell"),
        (11, "a number in column 'time'; got 'ten'"),
    ]:
        assert f"Line {line} of {folder / 'data.csv'} is left out: expected {words}." in said


# -- other commands and sources ------------------------------------------------------------------


def test_predict_names_bad_rows_too(folder, capsys):
    write(folder, frame())
    command(folder)
    (folder / "asked.csv").write_text("time\n2024-01-21\n22/01/2024\n2024-01-23\n")
    words = ["predict", str(folder / "run.sgp"), str(folder / "asked.csv")]
    with pytest.raises(SystemExit, match="got '22/01/2024' in line 3"):
        main(words)
    capsys.readouterr()
    main([*words, "--on-error", "skip"])
    said = capsys.readouterr()
    assert len(pd.read_csv(io.StringIO(said.out))) == 2
    assert "1 row left out" in said.err


def test_fleets_stop_or_skip(folder, capsys):
    table, _ = spoiled()
    write(folder, table.assign(key=["a", "b"] * 15))
    store = str(folder / "run.db")
    words = ["fleet", "run", str(folder / "run.toml"), str(folder / "data.csv"), "--key", "key"]
    with pytest.raises(SystemExit, match="a number in column 'level'; got 'warm' in line 5"):
        main([*words, "--store", store])
    with sgp.Store(store) as kept:
        assert not kept.keys()
    configure(folder, ("[data]", SKIP))
    for _ in range(2):  # the second run finds nothing new, and has the same counts
        main([*words, "--store", store])
        said = capsys.readouterr().err
        assert "26 rows of 2 keys are learned" in said
        assert "4 rows left out" in said
    (folder / "asked.csv").write_text("time,key\n2024-01-21,a\nsoon,b\n")
    asked = ["fleet", "predict", store, str(folder / "asked.csv"), "--key", "key"]
    with pytest.raises(SystemExit, match="got 'soon' in line 3"):
        main(asked)
    main([*asked, "--on-error", "skip"])
    assert "1 row left out" in capsys.readouterr().err


def test_lines_of_a_file_that_is_followed_count_on_after_a_restart(folder):
    lines = frame(25).to_csv(index=False).splitlines(keepends=True)
    path = folder / "data.csv"
    path.write_text("".join(lines[:13]))
    words = ["run", str(folder / "run.toml"), str(path), "--follow"]
    process = subprocess.Popen([sys.executable, "-m", "streamgp", *words], stderr=subprocess.PIPE)
    limit = time.monotonic() + 60
    while rows_of(folder) < 10 and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == exits.Status.INTERRUPTED
    bad = "2024-02-01,soon,1,1\n"
    path.write_text("".join([*lines[:15], "\n", bad, *lines[15:]]))
    with pytest.raises(SystemExit, match="got 'soon' in line 17 of"):
        main(words)


class Topic(AbstractFeed):
    """A feed of messages that ends as a run that is interrupted does."""

    def __init__(self, messages, place=None):
        self.messages, self.place = messages, place or 0

    def read(self, most):
        if self.place == len(self.messages):
            signal.raise_signal(signal.SIGTERM)
        each = self.messages[self.place : self.place + most]
        numbers = [f"{self.place + n}" for n in range(len(each))]
        self.place += len(each)
        return Messages(each, b"", self.place, numbers)

    def close(self):
        pass


def with_bad_messages(count):
    """Messages; those with the numbers 4, 7 and 12 cannot be used."""
    text = frame(count).to_json(orient="records", lines=True, date_format="iso")
    rows = [json.loads(row) for row in text.split()]
    rows[4]["level"], rows[7]["rain"] = "warm", 3
    messages = [json.dumps(row).encode() for row in rows]
    messages[12] = b"not JSON"
    return messages


def test_messages_of_a_broker_are_left_out_unless_they_shall_stop(folder, capsys, monkeypatch):
    messages = with_bad_messages(20)
    monkeypatch.setattr(urls, "opened", lambda *_: Topic(messages))
    topic = "kafka://broker:9092/readings"
    words = ["run", str(folder / "run.toml"), topic, "--model", str(folder / "run.sgp")]
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == exits.Status.INTERRUPTED
    assert sgp.load(folder / "run.sgp").observations["level"] == 17
    said = capsys.readouterr().err
    assert f"Message 4 of {topic} is left out: expected a number in column 'level'" in said
    assert f"Message 7 of {topic} is left out" in said
    assert f"Message 12 of {topic} is left out: expected one JSON object" in said
    assert "17 rows are learned" in said
    configure(folder, ("[data]", '[data]\non_error = "stop"'))
    with pytest.raises(SystemExit, match=f"got 'warm' in message 4 of {topic}"):
        main([*words, "--restart"])


def test_messages_that_are_left_out_count_in_their_batch(folder, monkeypatch):
    """So batches of ten are the same wherever a run stops, and messages that wait are not lost."""
    messages = with_bad_messages(30)

    def learned(model, count):
        """The model after a run that comes to the end of the first messages."""
        monkeypatch.setattr(urls, "opened", lambda _, place, __: Topic(messages[:count], place))
        topic, path = "kafka://broker:9092/readings", folder / model
        with pytest.raises(SystemExit):
            main(["run", str(folder / "run.toml"), topic, "--model", str(path)])
        return sgp.load(path)

    for count, good in ((13, 8), (18, 8), (29, 17), (30, 27)):
        stopped = learned("stopped.sgp", count)
        assert stopped.observations["level"] == good
    assert stopped.to_bytes() == learned("whole.sgp", 30).to_bytes()


# -- exit statuses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--version"], exits.Status.DONE),
        (["inspect", "nothing.sgp"], exits.Status.FAILED),
        (["sing"], exits.Status.MISUSED),
    ],
)
def test_exit_statuses(words, status):
    done = subprocess.run([sys.executable, "-m", "streamgp", *words], capture_output=True)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["fleet", "predict", "--help"]])
def test_the_help_explains_exit_statuses(words, capsys):
    with pytest.raises(SystemExit):
        main(words)
    shown = capsys.readouterr().out
    assert all(f"  {status.value} " in shown for status in exits.Status)
    assert exits.explained() in shown


def test_the_page_explains_the_same_exit_statuses():
    page = (Path(__file__).parents[2] / "docs/commands.md").read_text()
    rows = "".join(f"| {status.value} | {told} |\n" for status, told in exits.MEANINGS.items())
    assert f"| status | meaning |\n|---|---|\n{rows}\n" in page
