"""Files: a stream that is saved and loaded after every batch is the stream that never was."""

import dataclasses
import os
import stat
import subprocess
import sys

import numpy as np
import pytest
import tinygp
from scipy import special

import streamgp as sgp
import streamgp.kernels.tinygp_adapter
from streamgp.parameters import Positive
from streamgp.persistence import container, disk

GRID = sgp.Fixed(np.linspace(0, 6, 5))


@sgp.register
@dataclasses.dataclass(frozen=True, eq=False)
class Waiting(sgp.Likelihood):
    """A family of a user's, with a parameter and a setting."""

    shape: object = None
    unit: str = "s"

    def log_density(self, y, f):
        rate = self.shape * np.exp(-f[..., 0])
        log_y = np.log(np.where(y > 0, y, 1.0))
        scale = special.gammaln(self.shape) - self.shape * np.log(rate)
        return (self.shape - 1) * log_y - rate * y - scale

    def start(self, y):
        return Waiting(sgp.parameters.positive(self.shape, 2.0), self.unit)


@sgp.register
@dataclasses.dataclass(frozen=True)
class Bumps(sgp.Mean):
    """Mean functions of a user's, with an array, which does not compare as one thing."""

    centres: np.ndarray

    def __call__(self, x):
        return np.exp(-((x[:, :1] - self.centres) ** 2))

    @property
    def spreads(self):
        return (1.0,) * len(self.centres)


@sgp.register(name="acme.rule")
def two_more(t):
    return 2 + t


def batch(index):
    rng = np.random.default_rng(index)
    x = index + rng.uniform(0, 2, 6)
    return x, np.sin(x) + 0.1 * rng.normal(size=6)


def bits(model):
    """Every bit of what the next update depends on, with the kinds of arrays it comes in."""
    parts = {**vars(model._version.progress), "state": None}
    progress = {name: leaves(part) for name, part in parts.items()}
    return leaves(model.state), progress, repr(model)


def leaves(tree):
    """Everything in a tree of instances, with the types that it comes in."""
    if isinstance(tree, np.ndarray | np.generic):
        return type(tree), tree.dtype, tree.shape, tree.tobytes()
    if isinstance(tree, list | tuple):
        return type(tree), [leaves(part) for part in tree]
    if isinstance(tree, dict):
        return [(key, leaves(part)) for key, part in tree.items()]
    if dataclasses.is_dataclass(tree):
        own = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
        return type(tree), leaves(own)
    return tree


def scores(report):
    rows = {name: row.tobytes() for name, row in report.log_predictive_rows.items()}
    return rows, report.surprise, report.changed, report.inducing_after, str(report.bound)


def assert_goes_on(make, steps):
    """`steps` on one model, and on one that is bytes in between: the same to the last bit."""
    whole, parts = make(), make()
    expected = []
    for step in steps:
        report = step(whole)
        expected.append((report and scores(report), bits(whole)))
    for step, (reported, wanted) in zip(steps, expected, strict=True):
        data = parts.to_bytes()
        parts = sgp.from_bytes(data)
        assert parts.to_bytes() == data
        report = step(parts)
        assert (report and scores(report)) == reported
        assert bits(parts) == wanted


def updates(*batches):
    return [lambda model, b=b: model.update(*b) for b in batches]


LEARNING = sgp.VEM(rounds=1, evaluations=5)


@pytest.mark.parametrize(
    "settings",
    {
        "adaptive": {"engine": "dense"},
        "fixed points": {"inducing": GRID},
        "growing": {"inducing": sgp.Growing(two_more)},
        "growing, random": {"inducing": sgp.Growing(two_more, "random", seed=4)},
        "k-means": {"inducing": sgp.KMeans(4)},
        "a function": {"inducing": sgp.register(lambda view: view.x[:3], name="first three")},
        "forgetting": {"forgetting": 0.8, "inducing": GRID},
        "forgetting by input": {"forgetting": sgp.Forgetting(0.5, per=0.7), "inducing": GRID},
    }.items(),
    ids=lambda item: item[0],
)
def test_a_single_channel_goes_on(settings):
    assert_goes_on(
        lambda: sgp.ContinualGP(sgp.Gaussian(), learning=LEARNING, **settings[1]),
        updates(*map(batch, range(3))),
    )


def test_samples_go_on():
    t = np.linspace(0, 6, 24)
    chunks = [(c, np.sin(c)) for c in np.split(t, 3)]
    assert_goes_on(
        lambda: sgp.ContinualGP(sgp.Gaussian(), learning=None, inducing=GRID),
        [lambda model, c=c: model.update_many(*c) for c in chunks],
    )


def test_three_families_and_one_that_comes_later_go_on():
    x, y = batch(0)
    full = {"real": (x, y), "yes": (x, y > 0), "wait": (x, np.exp(y))}
    channels = {
        "real": sgp.Gaussian(noise=0.3),
        "yes": sgp.Bernoulli("probit"),
        "wait": Waiting(unit="h"),
    }
    kernels = [(sgp.RBF(1.5), 2)]
    assert_goes_on(
        lambda: sgp.ContinualGP(
            channels,
            latents=kernels,
            mixing={"real": sgp.fixed(np.ones((1, 2)))},
            learning=None,
            inducing=GRID,
            seed=5,
        ),
        [
            lambda model: model.update(full),
            lambda model: model.update({"wait": (x + 1, np.exp(y))}),
            lambda model: model.add_channel("late", sgp.Categorical(3)),
        ],
    )


def test_a_lone_channel_that_gets_company_goes_on():
    x, y = batch(0)
    assert_goes_on(
        lambda: sgp.ContinualGP(sgp.Gaussian(), learning=None),
        [
            lambda model: model.update(x[:1], y[:1]),
            lambda model: model.add_channel("b", sgp.Gaussian()),
            lambda model: model.update({"b": (x, y)}),
        ],
    )


@pytest.mark.parametrize(
    "mean", [None, sgp.Constant(3.0), {"a": sgp.Constant() + Bumps(np.arange(2.0)), "b": None}]
)
def test_mean_functions_are_kept(mean):
    x, y = batch(0)
    model = sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, mean=mean, learning=None)
    assert repr(sgp.from_bytes(model.to_bytes())._specification.mean) == repr(mean)
    model.update({"a": (x, y), "b": (x, -y)})
    again = sgp.from_bytes(model.to_bytes())
    assert bits(again) == bits(model)
    assert repr(again._specification.mean) == repr(mean)
    for name in ("a", "b"):
        np.testing.assert_allclose(
            again.predict([30.0], name).mean, model.predict([30.0], name).mean, rtol=1e-8
        )


@pytest.mark.parametrize("times", [False, True], ids=["numbers", "times"])
def test_a_stream_with_trend_seasons_and_events_goes_on(times):
    """Everything is numbers once it has begun; what was asked for stays as it was given."""
    begin = np.datetime64("2024-03-01")

    def at(days):
        return begin + np.asarray(days).astype("m8[D]") if times else np.asarray(days, float)

    stretch = ("2024-03-01", "2024-09-01") if times else (0, 180)
    windows = ["2024-03-05", ("2024-04-01", "2024-04-03")] if times else [4, (31, 33)]
    mean = sgp.Constant() + sgp.Trend(2, stretch) + sgp.Events({"holiday": windows})
    seasons = ["7D", np.timedelta64(90, "D")] if times else [7, sgp.Seasonal(90, harmonics=2)]
    day, rng = np.arange(60), np.random.default_rng(0)
    y = 3 + 0.1 * day + np.sin(2 * np.pi * day / 7) + 0.1 * rng.normal(size=60)

    def make():
        return sgp.ContinualGP(
            {"a": sgp.Gaussian(), "b": sgp.Gaussian()},
            mean={"a": mean},
            seasons=seasons,
            learning=LEARNING,
        )

    model = make()
    again = sgp.from_bytes(model.to_bytes())._specification
    assert again.mean == {"a": mean}
    assert again.seasons == model._specification.seasons
    assert_goes_on(
        make,
        [
            lambda model: model.update({"a": (at(day[:30]), y[:30])}),
            lambda model: model.add_channel("c", sgp.Gaussian()),
            lambda model: model.update({"a": (at(day[30:]), y[30:]), "c": (at(day[30:]), y[:30])}),
        ],
    )


def test_a_model_without_data_keeps_its_settings():
    foreign = tinygp.transforms.Subspace(0, tinygp.kernels.Matern32(2.0)) + 0.5
    model = sgp.ContinualGP(
        {"a b/ü": sgp.Categorical(3), "c": sgp.StudentT(df=np.float64(5.0))},
        latents=[sgp.RBF() * sgp.Periodic(period=sgp.fixed(7.0)), foreign],
        inducing=sgp.Adaptive(1e-3, 40),
        keep=0,
        seed=7,
    )
    model.add_channel("d", sgp.Poisson(), weights=np.ones((1, 2)))
    again = sgp.from_bytes(bytearray(model.to_bytes()))
    assert again.channels == model.channels
    assert again.state is None
    assert again.to_bytes() == model.to_bytes()
    for mine, its in [
        (again._specification, model._specification),
        (again._version.updater, model._version.updater),
    ]:
        assert repr(leaves(mine)) == repr(leaves(its))


def test_bytes_say_nothing_of_the_data():
    x, y = batch(0)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None, inducing=GRID)
    model.update(x, y)
    data = model.to_bytes()
    assert not any(number.tobytes() in data for number in [*x, *y])
    long = sgp.ContinualGP(sgp.Gaussian(), learning=None, inducing=GRID)
    long.update(np.tile(x, 20), np.tile(y, 20))
    assert abs(len(long.to_bytes()) - len(data)) < 50


# -- classes and functions of one's own ------------------------------------------------------------


class Unregistered(sgp.Gaussian):
    pass


@sgp.register
@dataclasses.dataclass(frozen=True, eq=False)
class Forgetful(sgp.Gaussian):
    """It has something that is no field."""

    def __init__(self, noise=None):
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "error", False)
        object.__setattr__(self, "unit", 0.5)

    def start(self, y):
        object.__setattr__(started := Forgetful(self.noise), "noise", Positive(self.unit))
        return started


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: sgp.ContinualGP(Unregistered()), r"register\(Unregistered\)"),
        (
            lambda: sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Growing(lambda t: 3 * t)),
            r"at inducing/rule; got .*lambda.*Define it with `def`",
        ),
        (lambda: sgp.ContinualGP(sgp.Gaussian(), inducing=batch), r"register\(batch\)"),
        (
            lambda: sgp.ContinualGP(sgp.Gaussian(noise=np.array(1j))),
            "real numbers or booleans at channels/0/1/noise; got an array of complex128",
        ),
    ],
)
def test_what_is_not_registered_cannot_be_saved(make, what, tmp_path):
    path = tmp_path / "model.sgp"
    with pytest.raises(sgp.FileError, match=rf"(?s)^expected .*{what}"):
        make().save(path)
    assert os.listdir(tmp_path) == []


def test_what_could_not_be_read_again_is_not_written():
    model = sgp.ContinualGP(sgp.Gaussian(), seed=1.5)
    with pytest.raises(sgp.FileError, match=r"a model whose parts fit together.* a seed"):
        model.to_bytes()
    model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=30.0))
    with pytest.raises(sgp.FileError, match=r"a model whose parts fit together.*budget is 30\.0"):
        model.to_bytes()
    model = sgp.ContinualGP(sgp.Gaussian())
    model.notes = "none"
    with pytest.raises(sgp.FileError, match=r"a model whose parts fit together.* notes by name"):
        model.to_bytes()


def test_what_would_be_read_otherwise_is_not_written():
    """A class whose instances need more than their fields, which is all that is written."""
    model = sgp.ContinualGP(Forgetful(), learning=None)
    model.update(*batch(0))
    with pytest.raises(sgp.FileError, match=r"a model whose parts fit together.*no attribute"):
        model.to_bytes()


@pytest.mark.parametrize(
    "settings",
    {
        "noise": {"channels": sgp.Gaussian(noise=Positive(np.array(2), spread=np.float32(1.5)))},
        "kernel": {"latents": sgp.RBF(Positive(2, spread=np.array(1), below=np.int64(2)))},
        "flag": {"channels": sgp.Gaussian(error=np.False_)},
        "text": {"channels": {np.str_("y"): sgp.Gaussian()}, "engine": np.str_("dense")},
        "budget": {"engine": "sparse", "inducing": sgp.Adaptive(np.float32(0.01), np.array(30))},
        "column": {"latents": sgp.RBF().on(np.int64(0))},
        "spread": {"mean": sgp.Constant(np.array(3.0))},
    }.items(),
    ids=lambda item: item[0],
)
def test_settings_may_be_numbers_of_any_kind(settings):
    asked = {"channels": sgp.Gaussian(), "engine": "dense", **settings[1]}

    def make():
        return sgp.ContinualGP(**asked, learning=LEARNING)

    assert_goes_on(make, updates(batch(0), batch(1)))


def test_what_is_not_registered_cannot_be_loaded(monkeypatch):
    data = sgp.ContinualGP(Waiting()).to_bytes()
    things = {n: t for n, t in sgp.registry._things.items() if n != "Waiting"}
    monkeypatch.setattr(sgp.registry, "_things", things)
    with pytest.raises(sgp.FileError, match=r"'Waiting'.* `streamgp\.register` it, before loading"):
        sgp.from_bytes(data)


def test_a_class_that_has_changed_cannot_be_loaded(monkeypatch):
    data = sgp.ContinualGP(Waiting()).to_bytes()

    @dataclasses.dataclass(frozen=True, eq=False)
    class Changed(Waiting):
        more: object = None

    things = {**sgp.registry._things, "Waiting": Changed}
    monkeypatch.setattr(sgp.registry, "_things", things)
    assert (
        sgp.from_bytes(data)._specification.channels["y"].more is None
    )  # a field that has a default

    class Fewer(sgp.Gaussian):
        pass

    monkeypatch.setitem(things, "Waiting", Fewer)
    with pytest.raises(sgp.FileError, match=r"'noise'.*'shape', 'unit'.*has changed"):
        sgp.from_bytes(data)


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (lambda: 0, None),
        (sgp.Gaussian, "streamgp.Mine"),
        (Unregistered, "Waiting"),
        (3, "three"),
        (Unregistered, ""),
    ],
)
def test_names_are_clear(thing, name):
    with pytest.raises(sgp.ConfigurationError, match=r"register\(…, name=…\)"):
        sgp.register(thing, name=name)


# -- on disk ---------------------------------------------------------------------------------------


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path, link = tmp_path / "model.sgp", tmp_path / "link.sgp"
    model = sgp.ContinualGP(sgp.Gaussian())
    model.save(path)
    link.symlink_to(path)
    model.add_channel("b", sgp.Poisson())
    model.save(str(link))
    assert link.is_symlink()
    assert sgp.load(str(path)).channels == sgp.load(link).channels == ("y", "b")
    assert sorted(os.listdir(tmp_path)) == ["link.sgp", "model.sgp"]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_save_that_breaks_off_leaves_the_old_file(broken, tmp_path, monkeypatch):
    path = tmp_path / "model.sgp"
    model = sgp.ContinualGP(sgp.Gaussian())
    model.save(path)
    model.add_channel("b", sgp.Poisson())

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(disk.os, broken, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert os.listdir(tmp_path) == ["model.sgp"]
    assert sgp.load(path).channels == ("y",)


def test_missing_and_forbidden_files_are_the_systems_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        sgp.load(tmp_path / "none.sgp")
    with pytest.raises(FileNotFoundError):
        sgp.ContinualGP(sgp.Gaussian()).save(tmp_path / "none" / "model.sgp")


# -- versions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [2, 7])
def test_other_formats_are_refused_and_named(other, monkeypatch):
    monkeypatch.setattr(container, "FORMAT", other)
    monkeypatch.setattr(container, "__version__", "9.9.0")
    data = sgp.ContinualGP(sgp.Gaussian()).to_bytes()
    monkeypatch.undo()
    with pytest.raises(
        sgp.FileError, match=rf"format 4, .*got format {other}, .*streamgp 9\.9\.0\. Install"
    ):
        sgp.from_bytes(data)


# -- kernels of tinygp -----------------------------------------------------------------------------


def test_kernels_of_tinygp_go_on():
    x, y = batch(0)
    assert_goes_on(
        lambda: sgp.ContinualGP(
            {"a": sgp.Gaussian(), "b": sgp.Gaussian()},
            latents=[
                tinygp.transforms.Subspace(0, tinygp.kernels.Matern32(2.0)) + 0.5,
                sgp.RBF() + tinygp.kernels.Polynomial(order=2.0, scale=sgp.fixed(3.0), sigma=1.0),
                tinygp.kernels.ExpSquared() * sgp.RBF(3.0),
            ],
            learning=LEARNING,
            inducing=GRID,
        ),
        [lambda model: model.update({"a": (x, y)}), lambda model: model.update({"b": (x, y)})],
    )


def test_files_with_kernels_of_tinygp_say_what_they_need(tmp_path):
    """In a process of its own, which has not imported the adapter."""
    path = tmp_path / "model.sgp"
    sgp.ContinualGP(sgp.Gaussian(), latents=tinygp.kernels.Matern32(2.0)).save(path)
    code = (
        "import sys, streamgp as sgp\n"
        "try:\n    sgp.load(sys.argv[1])\n"
        "except sgp.FileError as error:\n    print(error)\n"
        "assert not {'jax', 'tinygp'} & {*sys.modules}\n"
        "import streamgp.kernels.tinygp_adapter\n"
        "print(sgp.load(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    error, model = done.stdout.splitlines()
    assert error.startswith("expected '")
    assert "`import streamgp.kernels.tinygp_adapter` before loading" in error
    assert model.startswith("<ContinualGP {y: Gaussian}")


def test_kernels_of_some_columns_go_on():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 5, (12, 2)), rng.normal(size=12)
    assert_goes_on(
        lambda: sgp.ContinualGP(
            sgp.Gaussian(), latents=sgp.RBF().on(1) + sgp.Matern32().on([0, 1]), learning=LEARNING
        ),
        updates((x[:6], y[:6]), (x[6:], y[6:])),
    )


# -- folders ---------------------------------------------------------------------------------------


def test_a_missing_folder_is_said(tmp_path):
    model = sgp.ContinualGP(sgp.Gaussian())
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        model.save(tmp_path / "nowhere" / "model.sgp")
    assert not list(tmp_path.iterdir())
