"""Mean functions of channels: learned with the rest, and what predictions return to."""

import numpy as np
import pytest

import streamgp as sgp
from streamgp.model import means
from streamgp.model.means import NONE, Constant, Mean, MeanSum

X = np.linspace(0, 20, 80)
FAR = np.array([500.0])


class Trend(Mean):
    """A straight line through the origin."""

    spreads = (None,)

    def __call__(self, x):
        return x / 20


def streamed(y, mean, likelihood=None):
    """A model that learned in four batches, whose first is not like the others."""
    model = sgp.ContinualGP(likelihood or sgp.Gaussian(), mean=mean)
    for part in np.split(np.arange(80), 4):
        model.update(X[part], y[part])
    return model


def test_a_level_is_that_of_all_data_and_not_of_the_first():
    y = np.sin(3 * X) + np.where(X < 5, 0.0, 8.0)
    first = np.mean(y[:20])
    learned, stays = (streamed(y, mean).predict(FAR) for mean in (Constant(), None))
    assert stays.mean[0] == pytest.approx(first, abs=1e-6)
    assert learned.mean[0] > first + 1.5  # offline it is 1.9 more
    assert learned.std[0] > 0


def test_the_prior_of_a_level_holds_it():
    y = np.sin(3 * X) + np.where(X < 5, 0.0, 8.0)
    tight, broad = (streamed(y, Constant(s)).predict(FAR).mean[0] for s in (1e-3, None))
    assert tight == pytest.approx(np.mean(y[:20]), abs=0.01)
    assert broad > tight + 1.5


def test_a_line_goes_on_beyond_the_data():
    y = 3 + 1.5 * X + 0.1 * np.sin(5 * X)
    model = streamed(y, Constant() + Trend())
    np.testing.assert_allclose(model.predict([60.0]).mean, 3 + 1.5 * 60, rtol=0.05)
    assert np.abs(streamed(y, Constant()).predict([60.0]).mean[0] - 93) > 20


def test_means_add_up():
    x = np.array([[2.0], [10.0]])
    both = Constant(3.0) + Trend()
    np.testing.assert_array_equal(both(x), [[1.0, 0.1], [1.0, 0.5]])
    assert both.spreads == (3.0, None)
    assert (both + Constant()).size == 3
    assert (NONE + Constant()).size == 1
    assert NONE(x).shape == (2, 0)
    assert isinstance(both, MeanSum)
    with pytest.raises(TypeError):
        Constant() + 1.0


def test_each_channel_may_have_its_own():
    channels = {name: sgp.Gaussian() for name in ("a", "b", "c")}
    model = sgp.ContinualGP(channels, mean={"a": None, "b": Trend() + Constant()}, learning=None)
    model.update({name: (X, np.sin(X)) for name in channels})
    assert [c.mean.size for c in model.state.model.channels] == [0, 2, 1]
    assert [c.spread.value.shape for c in model.state.model.channels] == [(1, 0), (1, 2), (1, 1)]
    assert model.state.mean_weights.shape == (3, 2)
    unused = model.state.plain.basis_spreads()
    np.testing.assert_array_equal(unused == 0, [[True, True], [False, False], [False, True]])


def test_a_channel_that_a_dictionary_leaves_out_has_a_level():
    assert means.of_channel({"a": None}, "b") == Constant()
    assert means.of_channel({"a": None}, "a") is NONE
    assert means.of_channel(None, "a") is NONE


@pytest.mark.parametrize(
    "mean", [{"other": Constant()}, 3.0, "constant", sgp.RBF(), {"y": 1.0}], ids=str
)
def test_means_that_cannot_be(mean):
    with pytest.raises(sgp.ConfigurationError, match=r"(?s)^expected .+; got .+\. .+"):
        sgp.ContinualGP(sgp.Gaussian(), mean=mean)


@pytest.mark.parametrize("spread", [0.0, -1.0, np.nan, np.inf])
def test_spreads_that_cannot_be(spread):
    with pytest.raises(sgp.ConfigurationError, match="positive spread"):
        Constant(spread)
