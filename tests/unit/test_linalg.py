"""Factorisations with derivatives and maps of their own: against JAX's, and against hanging."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp

from streamgp.numerics import linalg


@pytest.fixture
def stack():
    roots = np.random.default_rng(0).normal(size=(3, 6, 9))
    return jnp.asarray(roots @ np.swapaxes(roots, 1, 2))


def energy(a, b, cholesky, solve):
    return jnp.sum(solve(cholesky(a + jnp.eye(6)), b) ** 2)


@pytest.mark.parametrize("transpose", [False, True])
def test_values_and_derivatives_are_those_of_jax(stack, transpose):
    b = jnp.asarray(np.random.default_rng(1).normal(size=(6, 2)))

    def ours(a, b):
        return energy(
            a, b, linalg.cholesky, lambda c, r: linalg.solve_lower(c, r, transpose=transpose)
        )

    def theirs(a, b):
        def solve(chol, rhs):
            return jax.scipy.linalg.solve_triangular(chol, rhs, lower=True, trans=int(transpose))

        return energy(a, b, jnp.linalg.cholesky, solve)

    a = stack[0]
    np.testing.assert_allclose(ours(a, b), theirs(a, b), rtol=1e-12)
    for argument in (0, 1):
        got, wanted = (jax.grad(f, argument)(a, b) for f in (ours, theirs))
        if argument == 0:  # only symmetric perturbations have a meaning
            got, wanted = got + got.T, wanted + wanted.T
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)


def test_leading_axes_and_vmap_agree_with_single_matrices(stack):
    singly = jnp.stack([linalg.cholesky(a) for a in stack])
    np.testing.assert_allclose(linalg.cholesky(stack), singly)
    np.testing.assert_allclose(jax.vmap(linalg.cholesky)(stack), singly)
    rhs = jnp.ones((3, 6, 2))
    solved = linalg.solve_lower(singly, rhs)
    np.testing.assert_allclose(singly @ solved, rhs, atol=1e-10)
    np.testing.assert_allclose(jax.vmap(linalg.solve_lower)(singly, rhs), solved)
    gradients = jax.vmap(jax.grad(lambda a: jnp.sum(linalg.cholesky(a))))(stack)
    np.testing.assert_allclose(
        gradients[1], jax.grad(lambda a: jnp.sum(linalg.cholesky(a)))(stack[1])
    )


def test_no_batched_lapack_call_is_ever_compiled(stack):
    """Two of them at once can wait for each other for ever on a small thread pool."""

    def program(a):
        chol = linalg.cholesky(a)
        return linalg.eigh(a)[0], linalg.solve_lower(chol, a), linalg.positive_part(a)

    text = (
        jax.jit(program).lower(stack).as_text()
        + jax.jit(jax.vmap(program)).lower(jnp.stack([stack, stack])).as_text()
    )
    operands = re.findall(r"@(?:lapack|blas)_\w+\(.*?:\s*\((tensor<[^)]*)\)", text)
    assert operands
    assert not [o for o in operands if re.match(r"tensor<\d+x\d+x\d+x", o)]


def test_identity_plus_a_huge_matrix_still_factorises():
    root = np.random.default_rng(0).normal(size=(40, 3))
    chol = linalg.cholesky_of_identity_plus(jnp.asarray(1e18 * root @ root.T))
    assert np.isfinite(chol).all()


def test_coinciding_points_share_their_nugget():
    kernel = tinygp.kernels.ExpSquared()
    z = jnp.asarray([[0.0], [1.0], [2.0]])
    everyone = jnp.ones(3, bool)
    own = linalg.gram(kernel, z, everyone)
    np.testing.assert_array_equal(linalg.cross_gram(kernel, z, everyone, z, everyone), own)
    one = linalg.cross_gram(kernel, z, everyone, z[1:2], jnp.ones(1, bool))
    np.testing.assert_array_equal(one, own[:, 1:2])


def test_empty_slots_are_independent_standard_normals():
    kernel = tinygp.kernels.ExpSquared()
    k = linalg.gram(kernel, jnp.zeros((3, 1)), jnp.asarray([True, False, False]))
    np.testing.assert_allclose(k, np.eye(3), atol=1e-9)
