"""The few matrix helpers: against NumPy's, and where factors are hard to have."""

import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.inference.sparse.prior import Prior
from streamgp.numerics import linalg
from streamgp.parameters import unwrap

GENERATOR = np.random.default_rng(0)
ROOT = GENERATOR.normal(size=(6, 9))
A = ROOT @ ROOT.T


def test_the_factor_is_lower_and_that_of_numpy():
    chol = linalg.cholesky(A)
    np.testing.assert_allclose(chol, np.linalg.cholesky(A), rtol=1e-12, atol=1e-14)
    assert np.all(np.triu(chol, 1) == 0)


def test_where_there_is_no_factor_there_is_no_number():
    assert np.isnan(linalg.cholesky(-A)).any()


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("shape", [(6,), (6, 3)])
@pytest.mark.parametrize("layout", ["C", "F", "slice"])
def test_triangular_solves_of_any_layout(transpose, shape, layout):
    chol, rhs = np.linalg.cholesky(A), GENERATOR.normal(size=shape)
    given = {
        "C": (np.ascontiguousarray(chol), np.ascontiguousarray(rhs)),
        "F": (np.asfortranarray(chol), np.asfortranarray(rhs)),
        "slice": (np.pad(chol, 2)[2:8, 2:8], np.repeat(rhs, 2, axis=0)[::2]),
    }[layout]
    copies = [part.copy() for part in given]
    wanted = np.linalg.solve(chol.T if transpose else chol, rhs)
    np.testing.assert_allclose(linalg.solve_lower(*given, transpose=transpose), wanted, rtol=1e-10)
    for part, before in zip(given, copies, strict=True):  # nothing is overwritten
        np.testing.assert_array_equal(part, before)


def test_the_inverse_from_a_factor_is_whole():
    np.testing.assert_allclose(linalg.inverse_of(np.linalg.cholesky(A)) @ A, np.eye(6), atol=1e-10)


@pytest.mark.parametrize("smooth", ["log-determinant", "solve", "entries"])
def test_derivatives_pass_through_the_factor(smooth):
    """By K from those by L: against differences along symmetric directions."""
    b, weights = GENERATOR.normal(size=6), GENERATOR.normal(size=(6, 6))

    def value(a):
        chol = np.linalg.cholesky(a)
        if smooth == "log-determinant":
            return np.sum(np.log(np.diag(chol)))
        if smooth == "solve":
            return np.sum(np.linalg.solve(chol, b) ** 2)
        return np.vdot(weights, chol)

    chol = np.linalg.cholesky(A)
    half = np.linalg.solve(chol, b)
    by_chol = {
        "log-determinant": np.diag(1 / np.diag(chol)),
        "solve": np.tril(-2 * np.outer(np.linalg.solve(chol.T, half), half)),
        "entries": np.tril(weights),
    }[smooth]
    got = linalg.cholesky_adjoint(chol, by_chol)
    np.testing.assert_allclose(got, got.T)
    for _ in range(5):
        direction = linalg.symmetric(GENERATOR.normal(size=(6, 6)))
        slope = (value(A + 1e-6 * direction) - value(A - 1e-6 * direction)) / 2e-6
        np.testing.assert_allclose(np.vdot(got, direction), slope, rtol=1e-6, atol=1e-8)


def test_identity_plus_a_matrix():
    chol = linalg.cholesky_of_identity_plus(A)
    np.testing.assert_allclose(chol @ chol.T, np.eye(6) + A, rtol=1e-12)


def test_identity_plus_a_huge_matrix_still_factorises():
    root = GENERATOR.normal(size=(40, 3))
    chol = linalg.cholesky_of_identity_plus(1e18 * root @ root.T)
    assert np.isfinite(chol).all()


def test_the_root_of_a_singular_covariance():
    root = GENERATOR.normal(size=(30, 4))
    covariance = root @ root.T
    half = linalg.square_root(covariance)
    np.testing.assert_allclose(half @ half.T, covariance, atol=1e-6)


def test_the_positive_part_of_a_stack():
    stack = np.stack([A, -A, np.diag([1.0, -2, 3, 0, -1, 5])])
    got = linalg.positive_part(stack)
    np.testing.assert_allclose(got[0], A, atol=1e-12)
    np.testing.assert_allclose(got[1], 0, atol=1e-12)
    np.testing.assert_allclose(got[2], np.diag([1.0, 0, 3, 0, 0, 5]), atol=1e-12)


def test_no_points_make_empty_factors():
    """A model before its first data."""
    nothing = np.zeros((0, 0))
    for function in (
        linalg.cholesky, linalg.inverse_of, linalg.cholesky_of_identity_plus, linalg.square_root,
    ):  # fmt: skip
        assert function(nothing).shape == (0, 0)
    assert linalg.solve_lower(nothing, np.zeros((0, 4))).shape == (0, 4)
    assert linalg.solve_lower(nothing, np.zeros(0), transpose=True).shape == (0,)


def test_coinciding_points_share_their_nugget():
    z = np.array([[0.0], [1.0], [2.0]])
    prior = Prior.of(unwrap(build.one_gaussian(0.9, 1.4)), (z,))
    own = linalg.with_nugget(dense.rbf(z, z, 0.9, 1.4))
    assert own[1, 1] > 1.4
    np.testing.assert_allclose(prior.chols[0] @ prior.chols[0].T, own, rtol=0, atol=1e-15)
    np.testing.assert_allclose(prior.cross_to((z,))[0], own, rtol=0, atol=1e-15)
    others = np.array([[1.0], [1.5]])
    one, other = prior.cross_to((others,))[0].T
    np.testing.assert_allclose(one, own[:, 1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(other, dense.rbf(z, others, 0.9, 1.4)[:, 1], rtol=0, atol=1e-15)
