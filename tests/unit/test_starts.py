"""The first batch chooses among starts: many cycles in a batch are not taken for noise."""

import numpy as np
import pytest

import streamgp as sgp

GENERATOR = np.random.default_rng(0)
X = np.sort(GENERATOR.uniform(0, 60, 150))
TEST = np.linspace(1, 59, 200)
NOISE = GENERATOR.normal(size=150)


def wave(x):
    """Nearly thirty cycles."""
    return np.sin(3 * x)


def error(model, name="y"):
    return np.sqrt(np.mean((model.predict(TEST, name).mean - wave(TEST)) ** 2))


@pytest.mark.parametrize("engine", ["dense", "chain"])
def test_many_cycles_in_the_first_batch_are_found(engine):
    model = sgp.ContinualGP(sgp.Gaussian(), engine=engine)
    model.update(X, wave(X) + 0.1 * NOISE)
    assert model.hyperparameters["channels"]["y"]["noise"] < 0.2
    assert error(model) < 0.4


def test_slow_and_fast_functions_are_told_apart():
    """Channels of two latent functions, of which one changes a hundred times as fast."""
    model = sgp.ContinualGP({"slow": sgp.Gaussian(), "fast": sgp.Gaussian()}, latents=2)
    slow = np.sin(X / 15)
    model.update({"slow": (X, slow + 0.1 * NOISE), "fast": (X, wave(X) + 0.1 * NOISE[::-1])})
    assert error(model, "fast") < 0.4
    assert np.sqrt(np.mean((model.predict(X, "slow").mean - slow) ** 2)) < 0.15


@pytest.mark.parametrize("learning", [None, sgp.VEM()])
def test_kernels_that_are_fixed_stay(learning):
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=[sgp.RBF(sgp.fixed(5.0), sgp.fixed(1.0))], learning=learning
    )
    model.update(X, wave(X))
    assert model.hyperparameters["latents"][0]["lengthscale"] == 5.0


def test_without_learning_the_first_start_stays():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(X, wave(X))
    fast, medium, slow = model.hyperparameters["latents"][0]["kernels"]
    assert medium["lengthscale"] == pytest.approx(0.25 * np.std(X))
    assert fast["lengthscale"] == pytest.approx(0.25 * medium["lengthscale"])
    assert slow["lengthscale"] == pytest.approx(8 * medium["lengthscale"])


def test_a_start_is_the_same_every_time():
    one, other = (sgp.ContinualGP({"a": sgp.Gaussian(), "b": sgp.Poisson()}) for _ in range(2))
    for model in (one, other):
        model.update({"a": (X, wave(X)), "b": (X, np.floor(2 + wave(X)))})
    assert one.to_bytes() == other.to_bytes()
