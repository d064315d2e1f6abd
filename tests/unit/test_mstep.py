"""BFGS in one loop: finds optima, never ends worse than it began, survives bad regions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from streamgp.inference.m_step import maximise


def rosenbrock(point):
    x, y = point["x"], point["y"]
    return -((1 - x) ** 2 + 100 * (y - x**2) ** 2) / 100


def test_finds_the_optimum():
    best, _ = maximise(rosenbrock, {"x": jnp.asarray(-1.2), "y": jnp.asarray(1.0)}, evaluations=200)
    assert rosenbrock(best) > -1e-4


def test_a_quadratic_takes_a_handful_of_evaluations():
    scales = jnp.asarray([1.0, 0.1, 3.0])
    best, evaluations = maximise(
        lambda p: -jnp.sum(scales * (p - 2.0) ** 2), jnp.zeros(3), evaluations=50
    )
    np.testing.assert_allclose(best, 2.0, atol=0.05)
    assert evaluations < 20


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_stopping_early_is_never_worse_than_the_start(limit):
    start = {"x": jnp.asarray(-1.2), "y": jnp.asarray(1.0)}
    best, evaluations = maximise(rosenbrock, start, evaluations=limit)
    assert rosenbrock(best) >= rosenbrock(start)
    assert evaluations <= limit


def test_turns_back_where_the_objective_is_not_finite():
    best, _ = maximise(lambda p: jnp.log(p) - p, jnp.asarray(0.1), evaluations=50)
    np.testing.assert_allclose(best, 1.0, atol=0.02)


def test_a_start_without_a_value_is_returned_as_it_came():
    best, evaluations = maximise(lambda p: jnp.log(p), jnp.asarray(-1.0), evaluations=50)
    assert best == -1.0
    assert evaluations == 1


def test_nothing_to_learn():
    assert maximise(lambda p: jnp.zeros(()), (), evaluations=5)[0] == ()


def test_maps_over_a_batch():
    targets = jnp.asarray([0.5, -1.0, 2.0])
    best, _ = jax.vmap(
        lambda t: maximise(lambda p: -((p - t) ** 2), jnp.asarray(0.0), evaluations=30)
    )(targets)
    np.testing.assert_allclose(best, targets, atol=0.01)
