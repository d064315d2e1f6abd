"""States that are copied or pickled, as river and scikit-learn do."""

import copy
import pickle

import jax
import numpy as np
import pytest
from tests._reference import build

from streamgp.inference.learner import Learner


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copied_state_keeps_its_precision(copied):
    points = build.inducing(np.linspace(-2, 2, 4))
    state = Learner(learning=None).init(build.one_gaussian(), points)
    with jax.enable_x64(False):
        again = copied(state)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for got, wanted in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
