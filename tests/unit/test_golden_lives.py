"""Lives of models beside what version 0.2.0 made of them; `tests/golden/lives.py` has them.

Numbers that follow from the model alone are the same. Where inference is approximate, or
hyperparameters are learned, the rows held out are predicted as well as then, or better.
"""

import json

import numpy as np
import pytest
from tests.golden import lives
from tests.golden.make import FOLDER

WORSE = 0.003  # nats per row
TOLERANCES = {**dict.fromkeys(lives.EXACT, 1e-6), **dict.fromkeys(lives.NEAR, 1e-3)}


@pytest.fixture(scope="module")
def known():
    with np.load(FOLDER / "numbers.npz") as file:
        return dict(file)


def scores(kind):
    return json.loads((FOLDER / f"{kind}.json").read_text())


@pytest.mark.parametrize("name", TOLERANCES)
def test_what_follows_from_the_model_is_the_same(known, name):
    found = (lives.EXACT | lives.NEAR)[name]().seen()
    assert {f"{name}/{what}" for what in found} == {k for k in known if k.split("/")[0] == name}
    for what, numbers in found.items():
        wanted = known[f"{name}/{what}"]
        scale = max(1.0, float(np.nanmax(np.abs(wanted))))
        tolerance = TOLERANCES[name] * scale
        np.testing.assert_allclose(numbers, wanted, rtol=0, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("name", lives.CLOSE)
def test_families_predict_as_well(name):
    assert_as_good(lives.CLOSE[name](), scores("close")[name])


@pytest.mark.parametrize("name", lives.LEARNED)
def test_what_is_learned_predicts_as_well(name):
    assert_as_good(lives.LEARNED[name](), scores("learned")[name])


def assert_as_good(life, then):
    now = life.nlpd()
    assert now.keys() == then.keys()
    assert all(now[channel] <= then[channel] + WORSE for channel in then), (now, then)
