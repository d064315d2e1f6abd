"""Races: the protocol, the scores, the claims and the reports. No other library is installed."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from streamgp.errors import ConfigurationError
from streamgp_lab.cli import bench
from streamgp_lab.experiments import banana, solar
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.problem import Problem, rows
from streamgp_lab.progress import bar
from streamgp_lab.races import contender as contender_module
from streamgp_lab.races import environments, first_steps, growth, race, start, summary, worker
from streamgp_lab.races.benchmark import Settings, comparison
from streamgp_lab.races.comparisons import batches, channels, dimensions, samples
from streamgp_lab.races.contender import Contender, ContenderError
from streamgp_lab.races.growth import Comparison, Curve
from streamgp_lab.races.race import Race, Result
from streamgp_lab.reporting.claims import at_most, everywhere, faster, no_worse, on_average
from streamgp_lab.reporting.report import write
from streamgp_lab.reporting.tables import median_and_range
from streamgp_lab.scores import NO_SCORE, score_of_moments


@pytest.fixture
def stream() -> Problem:
    generator = np.random.default_rng(0)
    x = np.linspace(0, 10, 90)
    y = np.sin(x) + 0.2 * generator.normal(size=90)
    batch, later = {"y": (x[:60], y[:60])}, {"y": (x[60:], y[60:])}
    return Problem([batch, later], [batch], single=1)


@pytest.fixture
def contenders(tmp_path, monkeypatch):
    """A folder for contenders of the test."""
    monkeypatch.setattr(contender_module, "FOLDER", tmp_path)
    return tmp_path


def run(problem, *contenders, repeats=1):
    shown = []
    each = Race("a race", [problem], contenders)
    results = race.run(each, Path("unused"), repeats=repeats, begin=shown.append)
    assert len(shown) == repeats * len(contenders)
    return results


def test_arrays_survive_the_wire():
    sent = {"x": np.arange(6.0).reshape(3, 2), "command": "learn", "n": np.int64(3)}
    got = worker.unpack(worker.pack(sent))
    np.testing.assert_array_equal(got["x"], sent["x"])
    assert str(got["command"]) == "learn"
    assert int(got["n"]) == 3


def test_a_filter_is_the_exact_gp(stream):
    """With the same hyperparameters a Kalman filter and scikit-learn agree on every sample."""
    results = run(stream, Contender("filter", "kalman"), Contender("exact", "sklearn_exact"))
    (filtered,), (exact,) = results["filter"], results["exact"]
    assert not filtered.reason, filtered.reason
    np.testing.assert_allclose(filtered.prequential, exact.prequential, rtol=1e-5)
    assert np.isnan(filtered.final.nlpd)  # it cannot predict the past
    assert exact.final.error < 0.3
    assert len(exact.sample_cpu) == 30
    assert exact.peak > 10


def test_ours_streams_either_way(stream):
    settings = {"kernel": "matern32", "grid": [0, 10, 12], "every": 0}
    many = {**settings, "many": True}
    results = run(
        stream,
        Contender("one", "ours", settings=settings),
        Contender("many", "ours", settings=many),
    )
    (one,), (together,) = results["one"], results["many"]
    assert not one.reason, one.reason
    np.testing.assert_allclose(one.prequential, together.prequential, rtol=1e-6)
    np.testing.assert_allclose(one.final, together.final, rtol=1e-5)


def test_everything_at_once(contenders):
    """Batches come one by one, or joined for a contender that needs all of them."""
    (contenders / "counts.py").write_text(
        "import numpy as np\n"
        "class Contender:\n"
        "    def __init__(self): self.sizes = []\n"
        "    def learn(self, x, y, channel): self.sizes.append(len(y))\n"
        "    def predict(self, x, channel):\n"
        "        return np.full(len(x), float(len(self.sizes))), np.ones(len(x))\n"
    )
    parts = [{"y": (np.arange(float(n)), np.full(n, 3.0))} for n in (4, 3)]
    problem = Problem(parts, parts)
    results = run(
        problem,
        Contender("stream", "counts"),
        Contender("offline", "counts", everything=True),
        Contender("rehearsed", "counts", rehearsed=True),
        repeats=2,
    )
    assert results["rehearsed"][0].final.error == 1.0  # it restarted: two batches, not four
    assert [len(result.cpu) for result in results["stream"]] == [2, 2]
    assert results["offline"][0].final.error == 2.0
    assert results["stream"][0].final.error == 1.0
    assert np.isnan(results["offline"][0].oldest_first)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RuntimeError('no luck')", "no luck"),
        ("import os; os._exit(3)", "exit status 3"),
        ("self.missing", "AttributeError"),
    ],
)
def test_a_contender_that_breaks_says_why(contenders, stream, body, words):
    (contenders / "broken.py").write_text(
        f"class Contender:\n    def learn(self, x, y, channel):\n        {body}\n"
    )
    (result,) = run(stream, Contender("broken", "broken"))["broken"]
    assert words in result.reason
    results = {"streamgp": [Result(reason="x")], "broken": [result]}
    table = summary.table(Race("a race", [stream], []), results)
    assert words in table.rows[1][1]


def test_a_contender_that_cannot_start_says_why(contenders):
    (contenders / "broken.py").write_text("import no_such_package\n")
    with pytest.raises(ContenderError, match="no_such_package"):
        Contender("broken", "broken").start(contenders)


def test_scores():
    generator = np.random.default_rng(0)
    y, mean, variance = generator.normal(size=(3, 50))
    variance = np.exp(variance)
    got = score_of_moments("real", y, mean, variance)
    density = stats.norm(mean, np.sqrt(variance))
    np.testing.assert_allclose(got.nlpd, -density.logpdf(y).mean())
    low, high = density.interval(0.95)
    np.testing.assert_allclose(got.coverage, np.mean((low <= y) & (y <= high)))
    chances = np.array([0.9, 0.2, 0.6])
    got = score_of_moments("binary", np.array([1.0, 0.0, 0.0]), chances, chances)
    np.testing.assert_allclose(got[:3], (3, -np.log([0.9, 0.8, 0.4]).mean(), 1 / 3))


def test_problems_of_experiments():
    problem = banana.problem(Options(share=0.05))
    assert problem.kind == "binary"
    assert len(problem.train) == 4
    low, high = problem.span[0]
    assert low < -2
    assert high > 2
    sunspots = solar.problem(Options(share=0.1))
    assert sunspots.kind == "real"
    assert rows(sunspots.channels, *sunspots.train[sunspots.single :]).size == 100


@pytest.mark.parametrize(
    ("name", "count", "width"),
    [
        ("powerplant", 9568, 4),
        ("protein", 45730, 9),
        ("winequality", 4898, 11),
        ("compactiv", 8192, 21),
        ("puma32h", 8192, 32),
    ],
)
def test_tables_of_several_inputs(name, count, width):
    drifting = dimensions.problem(name, drift=True, share=1.0)
    everything = rows(["y"], *drifting.train, *drifting.test)
    assert everything.x.shape == (count, width)
    np.testing.assert_allclose(everything.x.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(everything.y.std(), 1.0)
    assert len(drifting.train) == len(drifting.test) == 50
    shuffled = dimensions.problem(name, drift=False, share=1.0)
    assert moved(drifting) > 5 * moved(shuffled)


def test_a_table_of_classes():
    problem = dimensions.problem("defects", drift=False, share=1.0)
    everything = rows(["y"], *problem.train, *problem.test)
    assert everything.x.shape == (2109, 21)
    assert problem.kind == "binary"
    np.testing.assert_allclose(everything.y.mean(), 326 / 2109)


def test_splits_differ():
    first, second = (
        dimensions.problem("winequality", drift=True, share=0.1, seed=seed) for seed in range(2)
    )
    held_out = [{tuple(row) for row in rows(["y"], *each.test).x} for each in (first, second)]
    assert not held_out[0] & held_out[1]
    assert len(first.train) == 12  # batches of a small share are not tiny


def moved(problem):
    """How far the mean input of the last batch is from that of the first."""
    first, last = (problem.train[step]["y"][0].mean(axis=0) for step in (0, -1))
    return np.linalg.norm(first - last)


def test_claims():
    assert faster(10, 12.0, "they").holds
    assert not faster(10, 9.0, "they").holds
    assert no_worse("NLPD", 1.0, 1.0).holds
    assert not no_worse("NLPD", 1.1, 1.0).holds
    assert no_worse("NLPD", 1.1, 1.0, by=0.2).holds
    assert no_worse("NLPD", 1.1, np.nan).holds is None  # they failed
    assert faster(10, np.nan, "they").holds is None
    assert at_most(0.1, [0.0, 0.1], "NLPD").holds
    assert not at_most(0.1, [0.2], "NLPD").holds
    assert at_most(0.1, [np.nan], "NLPD").holds is None
    assert no_worse("NLPD", np.nan, 1.0).holds is False
    slow = Result(cpu=np.array([9.0, 2.0, 2.0]))
    fast = Result(cpu=np.array([9.0, 0.5, 0.5]))
    assert summary.ratios([slow], [fast], lambda result: result.warm) == [4.0]
    assert median_and_range([1.0, 3.0, 2.0], "×") == "2× (1–3)"


def test_claims_of_several_splits():
    assert on_average("NLPD", [1.0, 1.3], [1.1, 1.1], by=0.05).holds
    assert not on_average("NLPD", [1.0, 1.4], [1.1, 1.1], by=0.05).holds
    assert on_average("NLPD", [1.0], [np.nan]).holds is None
    said = everywhere("NLPD", [1.0, 1.3], [1.1, 1.1], by=0.05)
    assert said.holds is False
    assert "worst +0.2000" in said.measured
    assert everywhere("NLPD", [1.0, 1.1], [1.1, 1.1], by=0.05).holds
    assert everywhere("NLPD", [1.0, 1.1], [1.1, np.nan], by=0.05).holds is None


def scored(nlpd, error, seconds, oldest=(np.nan, np.nan)):
    score = NO_SCORE._replace(nlpd=nlpd, error=error)
    first, now = oldest
    return Result(final=score, cpu=np.array([seconds]), oldest_first=first, oldest_now=now)


def test_claims_of_several_inputs():
    """The reference of a split is the best of those that learned it."""
    results = {
        "streamgp": [scored(0.01, 0.51, 1.0, (0.3, 0.2)), scored(0.03, 0.51, 1.0, (0.3, 0.2))],
        dimensions.COLLAPSED: [scored(0.02, 0.50, 5.0, (np.nan, 0.1))] * 2,
        dimensions.GPFLOW: [scored(0.01, 0.52, 15.0)],
        dimensions.GPYTORCH: [Result(reason="broken")],
    }
    assert dimensions.best(results, lambda run: run.final.nlpd) == [0.01, 0.02]
    assert [claim.holds for claim in dimensions.claims(0.02)(results)] == [True, False, None, True]
    results[dimensions.GPYTORCH] = [scored(0.2, 0.6, 12.0)]
    said = dimensions.claims(0.05)(results)
    assert [claim.holds for claim in said] == [True, True, True, True]
    assert "5% of it, or of 0.1 if it is nearer to zero" in said[1].sentence
    assert said[2].measured == "12.0×"
    forgot = [scored(0.01, 0.51, 1.0, (0.3, 0.4))] * 2
    assert dimensions.claims(0.05)({**results, "streamgp": forgot})[3].holds is False


def test_claims_of_classes():
    offline = [scored(0.300, 0.100, 9.0), scored(0.310, 0.100, 9.0)]
    results = {
        "streamgp": [scored(0.301, 0.102, 1.0), scored(0.315, 0.102, 1.0)],
        dimensions.OFFLINE: offline,
        dimensions.GPFLOW: [scored(0.320, 0.110, 9.0)] * 2,
    }
    holds = [claim.holds for claim in dimensions.class_claims(results)]
    assert holds == [False, True, True, True]


def test_small_races_of_several_inputs():
    """Ours and the collapsed GP on two splits of a small share."""
    full = dimensions._regression("winequality", drift=False, share=0.06)
    ours = full.contenders[0]
    short = {"points": 12, "rounds": 1, "each": 5, "together": 10}
    theirs = Contender(
        "offline", "collapsed_offline", settings=short, everything=True, only_first=True
    )
    small = Race("wine", full.problems[:2], [ours, theirs], once=True)
    results = race.run(small, Path("unused"), repeats=3)
    assert [len(runs) for runs in results.values()] == [2, 1]  # not repeated
    assert not any(run.reason for runs in results.values() for run in runs)
    first, second = results["streamgp"]
    assert first.final.nlpd != second.final.nlpd
    shown = summary.table(small, results)
    assert "runs: 2" in shown.caption
    assert shown.rows[1][0] == "offline (first problem only)"


def test_classes_at_once():
    """Our own model learns the stream, or everything at once with more rounds."""
    full = dimensions._classification("banana", [banana.problem(Options(share=0.05))], 0.05)
    results = race.run(
        Race("banana", full.problems, full.contenders[:2]), Path("unused"), repeats=1
    )
    for (run,) in results.values():
        assert not run.reason, run.reason
        assert run.final.error < 0.4
    assert len(results[dimensions.OFFLINE][0].cpu) == 1


def test_exponents():
    sizes = [16, 32, 64, 128]
    curve = Curve("M", "M", 0, sizes, [s**2.5 for s in sizes], sizes, [100.0] * 4)
    np.testing.assert_allclose(curve.exponent, 2.5)
    np.testing.assert_allclose(curve.memory_exponent, 0.0, atol=1e-12)
    steep = Curve("M", "M", 0, sizes, [s**3.5 for s in sizes], sizes, [100.0] * 4)
    seen = Curve("seen", "samples seen", 0, sizes, [1.0] * 4, sizes, [s * 1.0 for s in sizes])
    assert [claim.holds for claim in growth.claims([curve, steep, seen])] == [
        True,
        False,
        True,
        False,
    ]


def test_what_is_written(stream, tmp_path):
    contenders = [Contender("streamgp", "kalman"), Contender("exact", "sklearn_exact")]
    each = Race("a sine", [stream], contenders, lambda found: [faster(2, 3.0, "before")])
    benchmark = comparison("samples", "About.", lambda share: [each])
    with bar("samples") as line:
        (report,) = benchmark.measure(Settings(tmp_path, repeats=2), line)
    text = write(report, tmp_path)
    assert "- a sine: at least 2× as fast as before: 3.0× (holds)" in text.read_text()
    assert len(re.findall(r"^\| (streamgp|exact) \|", text.read_text(), re.MULTILINE)) == 2
    record = json.loads((tmp_path / "samples.json").read_text())
    assert len(record["measured"][0]["results"]["exact"]) == 2
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".json", ".png", ".svg"}
    curve = Curve("M", "M", 0, [1, 2], [1.0, 2.0], [1.0, 2.0], [5.0, 6.0])
    assert "| M | 1.00 | 0.26 |" in write(growth.report([curve]), tmp_path).read_text()
    other = Comparison("before", curve, Curve("M", "M", 0, [2], [6.0], [6.0], [5.0]))
    assert "| M | before | 2 | 2,000 | 6,000 | 3× |" in text_of(growth.report([curve], [other]))


def test_other_libraries_can_be_left_out(stream, tmp_path):
    """They need not be installed then, and what is claimed of them is not measured."""
    ours = Contender("streamgp", "ours", settings={"every": 0})
    peer = Contender("peer", "ours", "a library that there is not")

    def claims(results):
        return [faster(2, results["peer"][0].total, "the peer")]

    sine, other = (Race(name, [stream], [ours, peer], claims) for name in ("sine, slow", "other"))
    benchmark = comparison("few", "About.", lambda share: [sine, other])
    with bar("few") as line:
        settings = Settings(tmp_path, repeats=1, only=("sine",), own=True)
        (report,) = benchmark.measure(settings, line)  # one race
        assert "| peer | left out |" in text_of(report)
        (claim,) = report.parts[1]
        assert claim.holds is None
        with pytest.raises(ConfigurationError, match="sine, slow"):
            next(benchmark.measure(settings._replace(only=("cosine",)), line))


def text_of(report):
    return "\n".join(part.markdown() for part in report.parts if hasattr(part, "markdown"))


def test_every_first_step_is_a_program():
    """Those that are short. The figures of all of them are claimed or shown."""
    found = {}
    for task in ("importing", "one_channel", "warm_updates", "predictions"):
        found |= start._run(task, None)
    assert len(found) == 8
    assert all(0 < seconds < 60 for seconds in found.values())
    assert set(start._LIMITS) - set(found) == {
        "first update, three families",
        "8 batches of a classifier with 30 inputs",
    }


@pytest.fixture
def starts():
    figures = [*start._LIMITS, start._LARGEST, start._AROUND]
    return {figure: [0.01, 0.02, 0.03] for figure in figures}


def test_claims_of_a_start(starts):
    assert [claim.holds for claim in start.claims(starts)] == [True] * 5
    slow = {figure: [60.0] for figure in starts} | {start._AROUND: [1.0]}
    assert [claim.holds for claim in start.claims(slow)] == [False] * 5


def test_a_start_is_compared_with_another_version(starts, monkeypatch, tmp_path):
    other = {figure: [10 * seconds for seconds in times] for figure, times in starts.items()}
    said = text_of(start.report({"streamgp": starts, "elsewhere": other}))
    assert "| import streamgp | 20 (10–30) | 200 (100–300) | 10× |" in said
    asked = []

    def run(task, source):
        asked.append(source)
        return dict.fromkeys(starts, 1.0)

    monkeypatch.setattr(start, "_run", run)
    with bar("start") as line:
        (report,) = start.measure(Settings(tmp_path, repeats=1, against=tmp_path), line)
    assert asked == [None, tmp_path] * len(first_steps.TASKS)
    assert "| 1× |" in text_of(report)


def test_another_version_is_a_checkout(tmp_path):
    with pytest.raises(ConfigurationError, match="src/streamgp"):
        start._run("importing", tmp_path)
    broken = tmp_path / "src" / "streamgp"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('of another age')")
    with pytest.raises(ConfigurationError, match="of another age"):
        start._run("importing", tmp_path)
    with pytest.raises(ContenderError, match="of another age"):
        growth._start({}, tmp_path)


def test_curves_beside_a_filter():
    ours = growth._samples(growth._SAMPLES, [16])
    assert ours.sizes == [16]
    beside = growth._filtered([ours])
    assert beside.rows[0][:3] == ["M, `update_many`", "Kalman filter, NumPy", "16"]


def test_curves_beside_another_version(monkeypatch, tmp_path):
    def samples(name, sizes, source=None):
        return Curve(name, "M", 64, sizes, [1.0 if source is None else 3.0], [1.0], [1.0])

    monkeypatch.setattr(growth, "_samples", samples)
    monkeypatch.setattr(
        growth, "_points", lambda name, sizes, learns, source: samples(name, sizes, source)
    )
    monkeypatch.setattr(
        growth, "_channels", lambda name, sizes, learns, source: samples(name, sizes, source)
    )
    learned, streamed, *channels_of_both = growth._compared([16, 32, 64], tmp_path)
    assert [row[2] for row in learned.rows] == ["32", "64"]
    assert [[row[2] for row in each.rows] for each in channels_of_both] == [["64"], ["64"]]
    assert [row[2:] for row in streamed.rows] == [
        [size, "1,000", "3,000", "3×"] for size in ("64", "128", "256")
    ]


def test_every_comparison_has_ours_and_files_for_all():
    for module in (batches, channels, dimensions, samples):
        for each in module.races(0.1):
            assert each.contenders[0].name == "streamgp"
            for contender in each.contenders:
                assert (contender_module.FOLDER / f"{contender.file}.py").exists()
                assert contender.environment in (environments.OWN, *environments.REQUIREMENTS)
                json.dumps(contender.settings)


def test_an_environment_that_cannot_be_made(tmp_path, monkeypatch):
    def fails(home, **_):
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "python").write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
        (home / "bin" / "python").chmod(0o755)

    monkeypatch.setattr(environments.venv, "create", fails)
    with pytest.raises(ConfigurationError, match="no network"):
        environments.python("gpflow", tmp_path)
    assert not (tmp_path / "gpflow" / "ready").exists()
    assert str(environments.python(environments.OWN, tmp_path)) == sys.executable


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((["speed"], {}), "speed"), ((["samples"], {"repeats": 0}), "repeats 0")],
)
def test_wrong_requests(tmp_path, arguments, words):
    names, settings = arguments
    with pytest.raises(ConfigurationError, match=words):
        bench.run(names, tmp_path, peers=tmp_path, **settings)
