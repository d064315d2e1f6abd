"""Many small matrices at once, and the evidence of intervals whose rows say odd things."""

import numpy as np
import pytest

import streamgp as sgp
from streamgp.inference.chain.elements import Forward, Gains, Moves, PairSites
from streamgp.inference.chain.innovations import before_pairs, gained
from streamgp.inference.chain.law import bridged
from streamgp.inference.chain.stretch import Weights
from streamgp.numerics.batched import inverse, rows_of

RNG = np.random.default_rng(0)


def of_rank(rank, size, count=7):
    half = RNG.normal(size=(count, rank, size)) * 10.0 ** RNG.uniform(-2, 2, (count, rank, 1))
    return np.swapaxes(half, 1, 2) @ half


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_inverses_are_numpys(size):
    matrices = RNG.normal(size=(20, size, size)) + 3 * np.eye(size)
    np.testing.assert_allclose(inverse(matrices), np.linalg.inv(matrices), rtol=1e-11, atol=1e-13)


def test_an_inverse_that_is_not_there_is_not_a_number():
    assert np.isnan(inverse(np.zeros((2, 3, 3)))).all()


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_rows_make_the_matrix_and_numbers_its_sides(rank):
    matrices = of_rank(rank, 5)
    sides = matrices @ RNG.normal(size=(7, 5, 2))
    rows, numbers = rows_of(matrices, sides, 1e-14)
    assert rows.shape[1] == numbers.shape[1] == rank
    turned, scale = np.swapaxes(rows, 1, 2), 1e-12 * np.abs(matrices).max(initial=1.0)
    np.testing.assert_allclose(turned @ rows, matrices, atol=scale)
    np.testing.assert_allclose(turned @ numbers, sides, atol=10 * scale)


def test_matrices_of_different_rank_go_together():
    matrices = np.concatenate([of_rank(1, 4), of_rank(4, 4), np.zeros((2, 4, 4))])
    rows, _ = rows_of(matrices, np.zeros((len(matrices), 4, 1)), 1e-14)
    np.testing.assert_allclose(
        np.swapaxes(rows, 1, 2) @ rows, matrices, atol=1e-12 * np.abs(matrices).max()
    )
    assert not rows[:7, 1:].any()  # of rank one
    assert not rows[-2:].any()


@pytest.mark.parametrize("beside", [0.0, 0.7])
def test_the_gain_of_intervals_is_that_of_the_dense_integral(beside):
    """Also where rows pull without curvature, so that their pull is not in the range of Λ."""
    size, count, columns = 2, 4, 3
    precision = of_rank(2, 2 * size, count)
    linear = precision @ RNG.normal(size=(count, 2 * size, columns))
    linear = linear + beside * RNG.normal(size=linear.shape)
    gram = of_rank(columns, columns, count)
    moves = Moves(RNG.normal(size=(count, size, size)), of_rank(1, size, count))
    before = Forward(RNG.normal(size=(count, size, columns)), of_rank(size, size, count))
    found = gained(before, moves, PairSites(linear, precision, gram))
    (mean, spread), expected, evidence = before_pairs(before, moves), np.sum(gram, axis=0), 0.0
    for m, p, r, j in zip(mean, spread, linear, precision, strict=True):
        # log ∫ N(x; m·g, P) exp((r·g)ᵀx − ½xᵀJx), as a function of g, with no inverse of P
        through = np.linalg.inv(np.eye(2 * size) + p @ j)
        there, bent = through @ (m + p @ r), through @ p
        expected = expected + r.T @ there + there.T @ r - r.T @ bent @ r
        expected = expected - m.T @ j @ np.linalg.inv(np.eye(2 * size) + p @ j) @ m
        evidence -= 0.5 * np.linalg.slogdet(np.eye(2 * size) + p @ j)[1]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found.gram, expected, atol=1e-9 * scale)
    np.testing.assert_allclose(found.evidence, evidence, rtol=1e-9)


def test_levels_whose_precision_is_lost_in_rounding_are_as_before_any_data():
    """Rows that are nearly free of noise say 1e16 of a level; rounding may leave more than I."""
    found = Weights.of(Gains(np.array([[8e11, -0.3], [-0.3, 89.0]]), -5e3))
    np.testing.assert_allclose(found.covariance, [[1.0]])
    assert np.isfinite(found.log_evidence)


@pytest.mark.parametrize("gap", [1e-6, 1e-15, 1e-150, 1e-300])
@pytest.mark.parametrize(
    "kernel", [sgp.SHO(3.0, variance=2.0), sgp.Matern52(1.0, 1.0)], ids=["SHO", "Matern52"]
)
def test_states_are_bridged_over_gaps_of_nearly_nothing(kernel, gap):
    for part in kernel.state_space():
        bridge = bridged(part, np.array([gap]), np.array([gap]))
        whole = bridge.near + bridge.far
        assert all(np.isfinite(own).all() for own in bridge)
        np.testing.assert_allclose(whole[0, 0, 0], 1.0, atol=1e-6)
