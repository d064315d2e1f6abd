"""Models that a worker has written lately."""

import numpy as np

import streamgp as sgp
from streamgp.spark import lately


def _model(level):
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
    model.update(np.arange(6.0), level + np.arange(6.0))
    return model


def test_a_model_is_at_hand_while_its_bytes_are_those_that_were_written():
    one, other = _model(0.0), _model(5.0)
    data = one.to_bytes()
    lately.keep("key", data, one)
    assert lately.model("key", data) is one
    assert lately.model("key", data) is not one  # it was handed over
    lately.keep("key", data, one)
    read = lately.model("key", other.to_bytes())  # as after work that Spark took back
    assert read is not one
    assert read.predict([3.0]).mean == other.predict([3.0]).mean


def test_few_models_are_held(monkeypatch):
    monkeypatch.setattr(lately, "MOST", 2)
    for key in "abc":
        lately.keep(key, b"", _model(0.0))
    assert len(lately._held) == 2
    assert "a" not in lately._held
