"""State spaces of kernels against the kernels themselves."""

import numpy as np
import pytest

from streamgp import kernels
from streamgp.inference.over_time.law import Law
from streamgp.inference.over_time.states import Rows, States
from streamgp.kernels.state_space import MATERN, LinearSDE

M12, M32, M52 = kernels.Matern12, kernels.Matern32, kernels.Matern52

MARKOV = {
    "matern12": M12(1.3, 0.7),
    "matern32": M32(1.3, 0.7),
    "matern52": M52(1.3, 0.7),
    "sum": M32(0.5, 0.4) + M52(4.0, 2.0),
    "multiple": kernels.Multiple(2.5, M32(0.8, 0.6)),
    "product": M32(1.0, 0.9) * M52(2.0, 1.5),
    "constant": kernels.Constant(3.0) + M12(1.0, 1.0),
    "linear": kernels.Linear(2.0, 1.5) + M32(1.0, 1.0),
    "periodic": kernels.Periodic(1.0, 1.2, 3.0),
    "quasi-periodic": kernels.Periodic(1.0, 1.2, 3.0) * M32(5.0, 1.0),
    "oscillator": kernels.SHO(2.0, 3.0, 0.8),
    "overdamped": kernels.SHO(4.0, 0.3, 0.8),
    "carma": kernels.CARMA([4.0, 0.5, 0.7], [1.5], 0.9),
    "smooth": kernels.MarkovRBF(1.3, 0.7),
    "damped waves": kernels.Cosine(3.0, 0.8) * M12(4.0, 1.0),
    "multiple of an oscillator": kernels.Multiple(2.0, kernels.SHO(2.0, 3.0, 0.8) * M32(5.0, 1.0)),
    "multiple of a product": kernels.Multiple(2.0, M12(1.0, 0.5) * M12(2.0, 3.0)),
}


def from_states(kernel, x):
    """K(x, x) by running the states from one input to the next."""
    parts = kernel.state_space()
    states = States(Law(parts, (0,) * len(parts), 1, 0.0), np.ones((1, 1)), np.zeros((1, 0)))
    none, zero = np.full(len(x), np.nan), np.zeros(len(x), int)
    return states.joint(Rows(x, none, np.ones(len(x)), zero, np.zeros((len(x), 0))))[1]


@pytest.mark.parametrize("name", MARKOV)
def test_states_have_the_kernels_covariance(name):
    kernel = MARKOV[name]
    x = np.array([-0.4, -0.1, 0.0, 0.02, 0.5, 0.9, 2.0, 2.3, 7.0])
    expected = kernel.matrix(x[:, None], x[:, None])
    tolerance = 1e-6 if "periodic" in name else 1e-12  # the cosine series is cut off
    np.testing.assert_allclose(from_states(kernel, x), expected, atol=tolerance)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("gap", [1e-9, 1e-4, 0.1])
def test_noise_over_short_gaps_is_composed_of_shorter_ones(order, gap):
    """Q(2g) = A(g)·Q(g)·A(g)ᵀ + Q(g), to the last digits of every entry."""
    state = LinearSDE(1.7, MATERN[order])
    (a,), (q,) = state.moves(np.array([gap]))
    _, (twice,) = state.moves(np.array([2 * gap]))
    np.testing.assert_allclose(a @ q @ a.T + q, twice, rtol=1e-12)
    assert np.linalg.eigvalsh(twice / np.sqrt(np.outer(np.diag(twice), np.diag(twice)))).min() > 0


def test_kernels_that_are_not_markov_have_no_states():
    assert kernels.RBF(1.0, 1.0).state_space() is None
    assert (kernels.RBF(1.0, 1.0) + M32(1.0, 1.0)).state_space() is None
    assert (kernels.RBF(1.0, 1.0) * M32(1.0, 1.0)).state_space() is None
    assert kernels.Multiple(2.0, kernels.RBF(1.0, 1.0)).state_space() is None
    assert (kernels.Linear(1.0, 1.0) * M32(1.0, 1.0)).state_space() is None
