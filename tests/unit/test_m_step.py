"""BFGS in one loop: finds optima, never ends worse than it began, survives bad regions."""

import itertools

import numpy as np
import pytest

from streamgp.inference.m_step import maximise


def rosenbrock(point):
    x, y = point
    value = -((1 - x) ** 2 + 100 * (y - x**2) ** 2) / 100
    gradient = np.array([2 * (1 - x) + 400 * x * (y - x**2), -200 * (y - x**2)]) / 100
    return value, gradient


START = np.array([-1.2, 1.0])


def test_finds_the_optimum():
    best, *_ = maximise(rosenbrock, START, evaluations=200)
    assert rosenbrock(best)[0] > -1e-4


def test_a_quadratic_takes_a_handful_of_evaluations():
    scales = np.array([1.0, 0.1, 3.0])

    def quadratic(p):
        return -float(np.sum(scales * (p - 2.0) ** 2)), -2 * scales * (p - 2.0)

    best, evaluations, _ = maximise(quadratic, np.zeros(3), evaluations=50)
    np.testing.assert_allclose(best, 2.0, atol=0.05)
    assert evaluations < 20


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_stopping_early_is_never_worse_than_the_start(limit):
    calls = []
    best, evaluations, _ = maximise(
        lambda p: calls.append(p) or rosenbrock(p), START, evaluations=limit
    )
    assert rosenbrock(best)[0] >= rosenbrock(START)[0]
    assert evaluations == len(calls) == limit


@np.errstate(invalid="ignore")
def logarithm(p):
    return float(np.log(p[0]) - p[0]), 1 / p - 1


def test_turns_back_where_the_objective_is_not_finite():
    best, *_ = maximise(logarithm, np.array([0.1]), evaluations=50)
    np.testing.assert_allclose(best, 1.0, atol=0.02)


def test_a_start_without_a_value_is_returned_as_it_came():
    best, evaluations, _ = maximise(logarithm, np.array([-1.0]), evaluations=50)
    assert best == -1.0
    assert evaluations == 1


def test_a_gradient_that_is_not_finite_is_refused():
    """As where a value survives a factor that has none."""

    def cliff(p):
        return -float(p[0] ** 2), np.array([np.nan if p[0] < 0.5 else -2 * p[0]])

    best, *_ = maximise(cliff, np.array([2.0]), evaluations=50)
    assert 0.5 <= best[0] < 2.0


def test_nothing_to_learn():
    best, evaluations, _ = maximise(lambda p: (0.0, p), np.zeros(0), evaluations=5)
    assert best.size == 0
    assert evaluations == 0


def test_every_step_is_the_textbooks():
    """Directions are those of the inverse Hessian as it is usually written, with its products."""
    generator = np.random.default_rng(0)
    turned = np.linalg.qr(generator.normal(size=(12, 12)))[0]
    curvature, passes = turned * generator.uniform(0.2, 0.8, 12) @ turned.T, []

    def quadratic(p):
        gradient = -curvature @ (p - 0.5)
        passes.append((p, gradient))
        return 0.5 * float((p - 0.5) @ gradient), gradient

    maximise(quadratic, np.zeros(12), evaluations=12)
    inverse, one = np.eye(12), np.eye(12)
    for (point, gradient), (following, after) in itertools.pairwise(passes):
        step, change = following - point, gradient - after
        np.testing.assert_allclose(step, inverse @ gradient, rtol=1e-9, atol=1e-12)
        if point is passes[0][0]:
            inverse = inverse * (step @ change) / (change @ change)
        left = one - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    assert len(passes) > 6
