"""The life of a model that keeps rows over time: files, copies, threads, failures, engines."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests import chains
from tests._reference import markov

import streamgp as sgp
from streamgp.inference.over_time.learner import RowLearner

X = 0.3 * np.arange(40.0)
Y = np.sin(X) + 0.1 * np.cos(7 * X)
TEST = np.linspace(-2, 16, 30)


def chain(channels=None, **options):
    return sgp.ContinualGP(channels or sgp.Gaussian(), latents=sgp.Matern32(), **options)


def learned():
    """Two channels of which one is counts, with learned hyperparameters."""
    model = chain({"a": sgp.Gaussian(), "b": sgp.Poisson()})
    model.update({"a": (X, Y), "b": (X[::3], np.floor(X[::3] % 4))})
    return model


def moments(model, x=TEST):
    found = [model.predict(x, name) for name in model.channels]
    return np.stack([part for own in found for part in (own.latent_mean, own.latent_variance)])


# -- files and copies ------------------------------------------------------------------------------


def test_a_saved_model_is_the_same_and_goes_on(tmp_path):
    model = learned()
    model.notes["where"] = "here"
    model.save(tmp_path / "model.sgp")
    again = sgp.load(tmp_path / "model.sgp")
    assert again.engine == "chain"
    assert again.notes == {"where": "here"}
    assert again.observations == model.observations
    assert again.to_bytes() == model.to_bytes()
    np.testing.assert_allclose(moments(again), moments(model), rtol=1e-12, atol=1e-12)
    for one in (model, again):
        one.update({"a": (X + 12, Y), "b": ([3.05, 13.0], [2.0, 0.0])})
        one.update_many(X[:5] + 24, Y[:5], ["a"] * 5)
        one.refine()
    np.testing.assert_allclose(moments(again), moments(model), rtol=1e-10, atol=1e-10)
    assert again.hyperparameters.keys() == model.hyperparameters.keys()


LONG = np.arange(3000.0)
SLOW = np.sin(LONG / 9)
STREAMS = {
    "one channel": (
        {"y": sgp.Gaussian()}, {"latents": sgp.Matern32(1.0)}, {"y": (LONG, SLOW)}
    ),
    "two channels in turn": (
        {"a": sgp.Gaussian(), "b": sgp.Gaussian()}, {"latents": [sgp.Matern32(), sgp.Matern52()]},
        {"a": (LONG[::2], SLOW[::2]), "b": (LONG[1::2], SLOW[1::2])},
    ),
    "three families and a season": (
        {"real": sgp.Gaussian(), "count": sgp.Poisson(), "binary": sgp.Bernoulli()},
        {"seasons": [24.0]},
        {
            "real": (LONG[::3], SLOW[::3]), "count": (LONG[1::3], np.floor(2 + 2 * SLOW[1::3])),
            "binary": (LONG[2::3], (SLOW[2::3] > 0) * 1.0),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_file_takes_few_bytes_per_observation(name):
    channels, options, data = STREAMS[name]
    model = sgp.ContinualGP(channels, learning=None, **options)
    model.update(data)
    assert model.engine == "chain"
    assert sum(model.observations.values()) == 3000
    assert len(model.to_bytes()) <= 100 * 3000


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_the_same_and_apart(copied):
    model = learned()
    data = model.to_bytes()
    again = copied(model)
    assert again.to_bytes() == data
    np.testing.assert_allclose(moments(again), moments(model), rtol=1e-12, atol=1e-12)
    again.update({"a": (X + 0.1, Y + 1)})
    assert again.observations["a"] == 2 * len(X)
    assert model.to_bytes() == data


# -- threads ---------------------------------------------------------------------------------------


def test_updates_from_two_threads_all_count():
    world = chains.one("matern32")
    rows = chains.draw(world, X)
    model = chains.model_of(world, "matern32")
    parts = [rows.take(part) for part in np.split(np.random.default_rng(0).permutation(40), 10)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda part: chains.fed(model, part), parts))
    assert model.observations == {"a": 40}
    found = markov.exact(world, rows, TEST, np.zeros(30, int))
    mean, variance = chains.moments(model, TEST, np.zeros(30, int))
    np.testing.assert_allclose(mean, found.mean, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(found.covariance), atol=1e-8)


def test_predictions_of_another_thread_see_finished_updates_only():
    """Predictions fill what a state has computed so far, while updates read it."""
    model = chain(learning=None, scale=False)
    model.update(X[:10], Y[:10])
    failed, seen = [], []

    def look():
        try:
            while not done.is_set():
                seen.append(moments(model))
        except Exception as error:
            failed.append(error)

    done = threading.Event()
    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for k in np.random.default_rng(1).permutation(np.arange(10, 40)):
        model.update(X[[k]], Y[[k]])
    done.set()
    for thread in threads:
        thread.join(30)
    assert not failed
    assert seen
    assert all(np.isfinite(found).all() for found in seen)
    alone = chain(learning=None, scale=False)
    alone.update(X, Y)
    np.testing.assert_allclose(moments(model), moments(alone), atol=1e-7)


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"a": ([1.0, np.inf], [1.0, 2.0])},
        {"a": ([1.0], [1.0]), "b": ([1.0], [-2.0])},
        {"a": ([1.0, 2.0], [1.0])},
        {"a": ([[1.0, 2.0]], [1.0])},
        {"c": ([1.0], [1.0])},
    ],
    ids=["no number", "no count", "too few", "too wide", "unknown"],
)
def test_bad_data_leave_the_model_as_it_was(bad):
    model = learned()
    data, state = model.to_bytes(), model.state
    with pytest.raises(sgp.DataError):
        model.update(bad)
    assert model.state is state
    assert model.to_bytes() == data


def test_an_update_that_breaks_off_leaves_the_model_as_it_was(monkeypatch):
    model = learned()
    data, before = model.to_bytes(), moments(model)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    for method, call in (
        ("step", lambda: model.update({"a": (X + 12, Y)})),
        ("filter_scored", lambda: model.update_many(X[:9] + 5.05, Y[:9], ["a"] * 9, learn=False)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(RowLearner, method, interrupted)
            with pytest.raises(KeyboardInterrupt):
                call()
        assert model.to_bytes() == data
        np.testing.assert_array_equal(moments(model), before)


# -- channels --------------------------------------------------------------------------------------


def test_a_channel_that_is_added_later_shares_all_that_is_known():
    model = chain(
        {"a": sgp.Gaussian(noise=0.3)}, learning=None, weight_uncertainty=False,
        mixing={"a": sgp.fixed([[1.0]])},
    )  # fmt: skip
    model.update({"a": (X, Y)})
    before = moments(model)
    model.add_channel("b", sgp.Gaussian(noise=0.2), weights=sgp.fixed([[-2.0]]))
    np.testing.assert_allclose(moments(model)[:2], before, rtol=1e-12, atol=1e-12)
    assert np.isfinite(moments(model)).all()
    late = X[5:20:4] + 0.15
    model.update({"a": (X[:4] + 12, Y[:4]), "b": (late, 3 - 2 * np.sin(late))})
    assert model.observations == {"a": 44, "b": len(late)}
    parts = (
        markov.Rows(np.r_[X, X[:4] + 12], np.zeros(44, int), np.r_[Y, Y[:4]]),
        markov.Rows(late, np.ones(len(late), int), 3 - 2 * np.sin(late)),
    )
    rows = markov.Rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    x, channel = np.tile(TEST, 2), np.repeat([0, 1], len(TEST))
    found = markov.exact(chains.world_of(model.state.plain), rows, x, channel)
    mean, variance = chains.moments(model, x, channel)
    np.testing.assert_allclose(mean, found.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(found.covariance), rtol=1e-8, atol=1e-8)


def test_a_channel_of_several_latent_parameters_is_added_later():
    model = learned()
    before = moments(model)
    model.add_channel("kind", sgp.Categorical(3))
    found = [model.predict(TEST, name) for name in ("a", "b")]
    still = np.stack([part for p in found for part in (p.latent_mean, p.latent_variance)])
    np.testing.assert_allclose(still, before, rtol=1e-12, atol=1e-12)
    report = model.update({"kind": (X[:12], np.arange(12) % 3.0)})
    assert np.isfinite(report.bound)
    again = sgp.from_bytes(model.to_bytes())
    got, wanted = (one.predict(TEST, "kind").probabilities for one in (again, model))
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    np.testing.assert_allclose(wanted.sum(axis=-1), 1.0)


# -- forgetting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [0.7, sgp.Forgetting(0.7, per=2.0)], ids=["update", "input"])
def test_a_model_that_forgets_follows_a_new_level_sooner(rule):
    """A slow function that jumps: what is left of the old level holds the new one back."""
    x = np.arange(56.0)
    y = np.where(x < 50, 0.0, 5.0)
    errors = []
    for forgetting in (1.0, rule):
        model = sgp.ContinualGP(
            sgp.Gaussian(noise=1.0), latents=sgp.Matern32(400.0, 4.0), learning=None, scale=False,
            forgetting=forgetting,
        )  # fmt: skip
        for part in np.split(np.arange(56), 28):
            report = model.update(x[part], y[part])
            assert np.isfinite(report.bound)
        prediction = model.predict(x)
        assert model.engine == "chain"
        assert np.isfinite(prediction.mean).all()
        assert np.all(prediction.variance > 0)
        errors.append(abs(float(prediction.mean[-1]) - 5.0))
    assert errors[1] < 0.5 * errors[0]


def test_what_fades_is_the_say_of_the_past():
    """With half of its say left, a row counts as one of twice the noise variance."""
    world = chains.one("matern32")
    rows = chains.draw(world, X)
    model = chains.model_of(world, "matern32", forgetting=0.5)
    chains.fed(model, rows.take(slice(20)), rows.take(slice(20, None)))
    np.testing.assert_allclose(model.state.heard, 30.0)
    np.testing.assert_allclose(model.state.kept.count.sum(), 30.0)
    faded = world._replace(
        weights=np.repeat(world.weights, 2, axis=0), offsets=np.repeat(world.offsets, 2),
        spreads=np.zeros(2), noises=world.noises * np.array([np.sqrt(2.0), 1.0]),
        processes=(world.processes[0] + markov.constant(world.spreads[0] ** 2),),
    )  # fmt: skip
    two = rows._replace(channel=np.repeat([0, 1], 20))
    found = markov.exact(faded, two, TEST, np.ones(30, int))
    mean, variance = chains.moments(model, TEST, np.zeros(30, int))
    np.testing.assert_allclose(mean, found.mean, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(found.covariance), atol=1e-8)


@pytest.mark.parametrize("likelihood", [sgp.Gaussian(noise=0.3), sgp.Poisson()])
def test_a_model_that_forgets_goes_on_for_ever_and_stays_small(likelihood):
    """What is left of the first rows is less than any number."""
    model = sgp.ContinualGP(
        likelihood, latents=sgp.Matern32(1.0, 1.0), learning=None, scale=False, forgetting=0.1
    )
    sizes = []
    for k in range(400):
        report = model.update([0.1 * k], [k % 3.0])
        assert np.isfinite(report.bound)
        if k % 200 == 199:
            sizes.append(len(model.to_bytes()))
    assert sizes[1] < 1.1 * sizes[0]
    again = sgp.from_bytes(model.to_bytes())
    np.testing.assert_allclose(moments(again), moments(model), rtol=1e-10, atol=1e-10)


# -- pictures and engines --------------------------------------------------------------------------


def test_pictures_are_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    model = learned()
    axes = model.plot(inducing=True)
    assert len(axes) == 2
    axes[0].figure.canvas.draw()
    assert len(model.plot("b")) == 1
    plt.close("all")


def test_the_engine_is_chosen_by_what_is_asked_for():
    rows = X[:, None]
    for options, inputs, wanted in (
        ({"latents": sgp.Matern32()}, rows, "chain"),
        ({"latents": [sgp.Matern12(), sgp.Periodic() * sgp.Matern52()]}, rows, "chain"),
        ({"latents": sgp.Matern32(), "engine": "dense"}, rows, "dense"),
        ({"latents": sgp.Matern32(), "inducing": sgp.Fixed(X[::4])}, rows, "sparse"),
        ({"latents": sgp.Matern32(), "keep": 0}, rows, "sparse"),
        ({"latents": [sgp.Matern32(), sgp.RBF()]}, rows, "dense"),
        ({"latents": sgp.Matern32()}, np.column_stack([X, X % 1]), "dense"),
        ({}, rows, "chain"),
        ({"latents": sgp.RBF()}, rows, "dense"),
        ({}, np.column_stack([X, X % 1]), "dense"),
    ):
        model = sgp.ContinualGP(sgp.Gaussian(), learning=None, **options)
        assert model.engine is None
        model.update(inputs, Y)
        assert model.engine == wanted, options
        assert sgp.from_bytes(model.to_bytes()).engine == wanted


@pytest.mark.parametrize(
    ("options", "inputs", "words"),
    [
        ({"latents": sgp.RBF()}, X, ["one input", "RBF", "Matérn", "auto"]),
        ({"latents": sgp.Linear() * sgp.Matern32()}, X, ["Markov", "Product"]),
        ({"latents": sgp.Matern32()}, np.column_stack([X, Y]), ["one input", "2 columns", "auto"]),
        ({"latents": sgp.Matern32(), "inducing": sgp.Fixed(X)}, X, ["inducing", "sparse"]),
    ],
    ids=["kernel", "product", "two inputs", "inducing"],
)
def test_a_chain_that_cannot_be_says_why(options, inputs, words):
    with pytest.raises(sgp.ConfigurationError) as raised:
        sgp.ContinualGP(sgp.Gaussian(), engine="chain", **options).update(inputs, Y)
    for word in words:
        assert word in str(raised.value)


def test_an_engine_that_is_unknown_is_refused():
    with pytest.raises(sgp.ConfigurationError, match="chain"):
        sgp.ContinualGP(sgp.Gaussian(), engine="quick")
