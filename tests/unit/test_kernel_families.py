"""Kernels: the textbook's values, and derivatives that agree with differences."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from streamgp import kernels
from streamgp.errors import ConfigurationError
from streamgp.kernels import distances
from streamgp.parameters import (
    Frozen,
    Positive,
    Real,
    fields_of,
    fixed,
    free_gradient,
    free_vector,
    nodes_of,
    prior_of,
    replaced,
    unwrap,
    with_free,
)

WIDTHS = [1, 2, 3, 9, 30]
KINDS = ["RBF", "Matern12", "Matern32", "Matern52", "RationalQuadratic", "Periodic", "Linear"]


def inputs(width, rows=23, others=17, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, width)), rng.normal(size=(others, width))


def ours(kind, width):
    """A kernel with plain parameters."""
    rng = np.random.default_rng(3)
    lengthscale = rng.uniform(0.5, 1.5, width) * np.sqrt(width)
    extra = {"RationalQuadratic": {"alpha": 1.7}, "Periodic": {"period": 2.3}}.get(kind, {})
    if kind == "Periodic":
        lengthscale = np.asarray(1.4)
    kernel = getattr(kernels, kind)(lengthscale, np.asarray(1.3), **extra)
    return replaced(kernel, **{name: np.asarray(value, float) for name, value in fields_of(kernel)})


def kinds_of_kernel(width):
    first = (0,) if width == 1 else (0, width - 1)
    lone = [ours(kind, width) for kind in KINDS]
    narrow = ours("Matern52", len(first))
    ard = ours("Periodic", width)
    return [
        *lone,
        replaced(ard, lengthscale=np.linspace(1.1, 1.9, width), period=np.linspace(2, 3, width)),
        replaced(ours("RBF", width), lengthscale=np.asarray(1.2)),
        unwrap(kernels.Constant(0.7)),
        lone[0] + lone[6] + 0.5,
        lone[0] * lone[5] * lone[2],
        1.5 * lone[3],
        narrow.on(first),
        2.0 * lone[1] * narrow.on(first) + kernels.Constant(0.3),
    ]


def leaves(tree):
    """Numbers of a gradient or of a kernel with their path, for comparison."""
    if isinstance(tree, dict):
        return {(k, *p): v for k, part in tree.items() for p, v in leaves(part).items()}
    if isinstance(tree, tuple):
        return {(k, *p): v for k, part in enumerate(tree) for p, v in leaves(part).items()}
    return {(): np.asarray(tree)}


def assert_gradients_close(actual, expected, rtol=1e-6, atol=1e-7):
    actual, expected = leaves(actual), leaves(expected)
    assert actual.keys() <= expected.keys()
    for path, value in expected.items():
        mine = actual.get(path, np.zeros(value.shape))  # what is left out is zero
        assert mine.shape == value.shape, path
        scale = max(1.0, np.abs(value).max())
        np.testing.assert_allclose(mine, value, rtol=rtol, atol=atol * scale, err_msg=str(path))


# -- values --------------------------------------------------------------------------------------


def textbook(kind, kernel, x1, x2):
    """k(x1, x2) from the differences of every pair of points."""
    difference = x1[:, None] - x2
    if kind == "Linear":
        return kernel.variance * np.sum(x1[:, None] * x2 / kernel.lengthscale**2, axis=-1)
    if kind == "Periodic":
        sine = np.sin(np.pi * difference / kernel.period)
        return kernel.variance * np.exp(-2 * np.sum(sine**2 / kernel.lengthscale**2, axis=-1))
    square = np.sum((difference / kernel.lengthscale) ** 2, axis=-1)
    r = np.sqrt(square)
    return (
        kernel.variance
        * {
            "RBF": lambda: np.exp(-0.5 * square),
            "Matern12": lambda: np.exp(-r),
            "Matern32": lambda: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
            "Matern52": lambda: (1 + np.sqrt(5) * r + 5 / 3 * square) * np.exp(-np.sqrt(5) * r),
            "RationalQuadratic": lambda: (1 + 0.5 * square / kernel.alpha) ** -kernel.alpha,
        }[kind]()
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [23, 400])
def test_the_values_are_the_textbooks(kind, width, rows):
    x1, x2 = inputs(width, rows, 300 if rows == 400 else 17)
    kernel = ours(kind, width)
    for other in (x1, x2):
        expected = textbook(kind, kernel, x1, other)
        np.testing.assert_allclose(kernel.matrix(x1, other), expected, rtol=0, atol=1e-11)
    own = np.diag(textbook(kind, kernel, x1, x1))
    np.testing.assert_allclose(kernel.diagonal(x1), own, rtol=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [23, 301])
def test_a_gram_matrix_is_symmetric_and_positive(width, rows):
    x, _ = inputs(width, rows)
    x[7] = x[3]  # a point twice
    for kernel in kinds_of_kernel(width):
        gram = kernel.matrix(x, x)
        np.testing.assert_array_equal(gram, gram.T)
        np.testing.assert_allclose(np.diag(gram), kernel.diagonal(x), rtol=1e-13)
        np.testing.assert_allclose(gram[3], gram[7], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(kernel.matrix(x, x.copy()), gram, rtol=1e-11, atol=1e-13)
        nugget = 1e-12 * rows * np.diag(gram).max()
        assert np.isfinite(np.linalg.cholesky(gram + nugget * np.eye(rows))).all()


@pytest.mark.parametrize("kind", KINDS[:5])
@pytest.mark.parametrize("width", WIDTHS)
def test_points_that_coincide_have_exactly_the_variance(kind, width):
    x, z = inputs(width, 700, 300)
    z[:200] = x[300:500]
    kernel = ours(kind, width)
    cross = kernel.matrix(x, z)
    assert (cross[np.arange(300, 500), np.arange(200)] == kernel.variance).all()
    assert (np.diag(kernel.matrix(x, x)) == kernel.variance).all()


def test_empty_inputs_give_empty_matrices():
    nothing, x = np.zeros((0, 2)), np.ones((3, 2))
    for kernel in kinds_of_kernel(2):
        for first, second in [(nothing, x), (x, nothing), (nothing, nothing)]:
            values = kernel.matrix(first, second)
            assert values.shape == (len(first), len(second))
            kernel.pullback(first, second, values, values)
            assert kernel.input_gradient(first, second, values, values).shape == first.shape
        assert kernel.diagonal(nothing).shape == (0,)


# -- distances -----------------------------------------------------------------------------------


def reference_squares(a, b):
    """In extended precision, from differences."""
    wide = a.astype(np.longdouble)[:, None] - b.astype(np.longdouble)
    return np.sum(wide * wide, axis=-1)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("width", [1, 2, 5, 9, 30])
@pytest.mark.parametrize("closeness", [1e-12, 1e-6, 1e-2])
def test_squared_distances_keep_their_digits(width, offset, closeness):
    rng = np.random.default_rng(1)
    a = offset + rng.normal(size=(300, width))
    b = offset + rng.normal(size=(250, width))
    b[:100] = a[:100] + closeness * rng.normal(size=(100, width))
    exact = reference_squares(a, b)
    np.testing.assert_allclose(distances.squared_distances(a, b), exact.astype(float), rtol=2e-12)
    np.testing.assert_allclose(distances.distances(a, b) ** 2, exact.astype(float), rtol=2e-12)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("width", [1, 2, 9])
def test_moments_keep_their_digits_with_steep_weights(width, scale):
    """A stream that has run for long: most pairs are far apart, few are very close."""
    rng = np.random.default_rng(1)
    a, b = scale * rng.normal(size=(300, width)), scale * rng.normal(size=(200, width))
    b[:50] = a[:50] + 1e-9 * rng.normal(size=(50, width))
    exact = a.astype(np.longdouble)[:, None] - b.astype(np.longdouble)
    distance = distances.distances(a, b)
    weights = rng.uniform(0.5, 1.5, size=distance.shape) * np.exp(-distance / scale) / distance
    second = np.sum(weights[..., None] * exact**2, axis=(0, 1)).astype(float)
    first = np.sum(weights[..., None] * exact, axis=1).astype(float)
    ours_second = distances.second_moments(a, b, weights, distance)
    np.testing.assert_allclose(ours_second, second, rtol=1e-10)
    ours_first = distances.first_moments(a, b, weights, distance)
    np.testing.assert_allclose(ours_first, first, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_moments_do_not_depend_on_where_the_points_are(offset, scale):
    rng = np.random.default_rng(2)
    a, b = scale * rng.normal(size=(150, 6)), scale * rng.normal(size=(90, 6))
    a, b = a + offset, b + offset
    weights = rng.uniform(size=(150, 90))
    exact = a.astype(np.longdouble)[:, None] - b.astype(np.longdouble)
    second = np.sum(weights[..., None] * exact**2, axis=(0, 1)).astype(float)
    first = np.sum(weights[..., None] * exact, axis=1).astype(float)
    np.testing.assert_allclose(distances.second_moments(a, b, weights), second, rtol=1e-11)
    np.testing.assert_allclose(
        distances.first_moments(a, b, weights), first, rtol=1e-9, atol=1e-9 * scale
    )


def test_a_narrow_cluster_far_away_keeps_its_digits():
    """Nearly all pairs are close there, beside their distance from the mean."""
    rng = np.random.default_rng(0)
    a = np.concatenate([1e4 + rng.normal(size=(200, 8)), -1e4 + rng.normal(size=(200, 8))])
    weights = rng.uniform(size=(400, 400))
    exact = a.astype(np.longdouble)[:, None] - a.astype(np.longdouble)
    squares = np.sum(exact**2, axis=-1).astype(float)
    np.testing.assert_allclose(distances.squared_distances(a, a), squares, rtol=1e-12)
    weights *= squares < 1e4
    second = np.sum(weights[..., None] * exact**2, axis=(0, 1)).astype(float)
    np.testing.assert_allclose(distances.second_moments(a, a, weights), second, rtol=1e-11)


# -- derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 9])
@pytest.mark.parametrize("rows", [23, 250])
def test_pullbacks_agree_with_differences(width, rows):
    x1, x2 = inputs(width, rows, 17 if rows == 23 else 120)
    x1[:5] = x2[:5]
    rng = np.random.default_rng(4)
    weights = rng.normal(size=(len(x1), len(x2)))
    own = rng.normal(size=len(x1))
    for kernel in kinds_of_kernel(width):
        matrix = kernel.matrix(x1, x2)
        expected = kernels.Kernel.pullback(kernel, x1, x2, weights)
        assert_gradients_close(kernel.pullback(x1, x2, weights, matrix), expected)
        assert_gradients_close(kernel.pullback(x1, x2, weights), expected)
        expected = kernels.Kernel.diagonal_pullback(kernel, x1, own)
        assert_gradients_close(kernel.diagonal_pullback(x1, own), expected)


@pytest.mark.parametrize("width", [1, 2, 9])
@pytest.mark.parametrize("rows", [23, 250])
def test_input_gradients_agree_with_differences(width, rows):
    x1, x2 = inputs(width, rows, 17 if rows == 23 else 120)
    weights = np.random.default_rng(4).normal(size=(len(x1), len(x2)))
    for kernel in kinds_of_kernel(width):
        matrix = kernel.matrix(x1, x2)
        expected = kernels.Kernel.input_gradient(kernel, x1, x2, weights)
        for known in (matrix, None):
            actual = kernel.input_gradient(x1, x2, weights, known)
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_never_written_to(kind):
    x1, x2 = inputs(9, 200, 100)
    weights = np.random.default_rng(5).normal(size=(200, 100))
    kernel = ours(kind, 9)
    matrix = kernel.matrix(x1, x2)
    arrays = [x1, x2, weights, matrix, *(value for _, value in fields_of(kernel))]
    for array in arrays:
        array.setflags(write=False)
    kernel.matrix(x1, x2), kernel.matrix(x1, x1), kernel.diagonal(x1)
    kernel.pullback(x1, x2, weights, matrix), kernel.pullback(x1, x2, weights)
    kernel.input_gradient(x1, x2, weights, matrix)


# -- starting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [2.0, None])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_out_comes_from_the_data(kind, variance):
    """A lengthscale per input, in proportion to its spread; one variance, fixed if it is mixed."""
    spread = np.array([0.5, 3.0])
    started = kernels.start(getattr(kernels, kind)(), spread, variance)
    plain = unwrap(started)
    expected = np.ones(2) if kind == "Periodic" else np.sqrt(2) * spread
    np.testing.assert_allclose(np.broadcast_to(plain.lengthscale, 2), expected)
    np.testing.assert_allclose(plain.variance, variance or 1.0)
    assert isinstance(started.lengthscale, Positive)
    assert isinstance(started.variance, Frozen) == (variance is None)
    for name in {"period", "alpha"} & {name for name, _ in fields_of(plain)}:
        assert getattr(plain, name) == 1.0


def test_the_prior_prefers_the_start():
    kernel = kernels.start(kernels.RBF(2.0), np.ones(1), 3.0)
    centre, spread = prior_of(kernel)
    np.testing.assert_allclose(centre, free_vector(kernel))
    np.testing.assert_allclose(spread, 1.5)
    moved = with_free(kernel, free_vector(kernel) + 1.0)
    np.testing.assert_array_equal(prior_of(moved)[0], centre)


def test_a_variance_within_a_sum_is_learned():
    kernel = kernels.start(kernels.RBF() + kernels.Linear(), np.ones(2), None)
    assert all(isinstance(part.variance, Positive) for part in kernel.kernels)
    assert isinstance(kernels.start(kernels.RBF().on(1), np.ones(2), None).kernel.variance, Frozen)


def test_numbers_start_and_fixed_ones_stay():
    kernel = kernels.start(kernels.RationalQuadratic(2, fixed(3.0), alpha=2), np.ones(1), 1.0)
    np.testing.assert_allclose(np.exp(free_vector(kernel)), [2.0, 2.0])
    with pytest.raises(ConfigurationError):
        kernels.start(kernels.RBF(lengthscale=-1.0), np.ones(1), 1.0)
    with pytest.raises(ConfigurationError):
        kernels.start(-1.0 * kernels.RBF(), np.ones(1), 1.0)
    with pytest.raises(ConfigurationError):
        kernels.start(kernels.RBF(lengthscale=[1.0, 2.0, 3.0]), np.ones(2), 1.0)
    with pytest.raises(ConfigurationError):
        kernels.start(kernels.RBF(variance=[1.0, 2.0]), np.ones(2), 1.0)


@pytest.mark.parametrize("width", [1, 3])
def test_the_whole_way_to_a_free_vector(width):
    x1, x2 = inputs(width)
    weights = np.random.default_rng(4).normal(size=(len(x1), len(x2)))
    kernel = (
        2.0 * kernels.RBF() * kernels.Periodic() + kernels.Matern32().on(0) + kernels.Linear() + 0.3
    )
    kernel = kernels.start(kernel, np.full(width, 0.8), 1.5)

    def total(vector):
        return np.vdot(weights, unwrap(with_free(kernel, vector)).matrix(x1, x2))

    vector = free_vector(kernel)
    steps = 1e-6 * np.eye(len(vector))
    expected = [(total(vector + s) - total(vector - s)) / 2e-6 for s in steps]
    gradient = free_gradient(kernel, unwrap(kernel).pullback(x1, x2, weights))
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


# -- composition ---------------------------------------------------------------------------------


def test_sums_and_products_are_those_of_matrices():
    x1, x2 = inputs(2)
    a, b = ours("RBF", 2), ours("Matern12", 2)
    ka, kb = a.matrix(x1, x2), b.matrix(x1, x2)
    for kernel, expected in [
        (a + b, ka + kb),
        (a * b, ka * kb),
        (a + 2, ka + 2),
        (2 + a, ka + 2),
        (np.float64(2.0) * a, 2 * ka),
        (a * np.asarray(2.0), 2 * ka),
        (sum([a, b, a]), 2 * ka + kb),
        (a * (b + 1.0), ka * (kb + 1)),
        (kernels.Constant(3.0) * a, 3 * ka),
    ]:
        np.testing.assert_allclose(kernel.matrix(x1, x2), expected, rtol=1e-14)
    assert len((a + b + a).kernels) == len((a * b * a).kernels) == 3
    with pytest.raises(ConfigurationError):
        a + "b"


def test_a_factor_may_be_fixed():
    kernel = kernels.start(fixed(2.0) * kernels.RBF(fixed(1.0), fixed(1.0)), np.ones(1), 1.0)
    assert free_vector(kernel).size == 0


def test_columns_by_number_and_by_name():
    x1, x2 = inputs(3)
    base = ours("RBF", 2)
    by_number = base.on([2, 0])
    by_name = base.on(["time", "depth"]).resolved(["depth", "width", "time"])
    expected = base.matrix(x1[:, [2, 0]], x2[:, [2, 0]])
    np.testing.assert_array_equal(by_number.matrix(x1, x2), expected)
    np.testing.assert_array_equal(by_name.matrix(x1, x2), expected)
    nested = kernels.RBF().on("time").on(["depth", "time"]) + kernels.Linear()
    nested = nested.resolved(["time", "width", "depth"])
    assert nested.kernels[0].columns == (2, 0)
    assert nested.kernels[0].kernel.columns == (1,)


def test_a_kernel_of_some_columns_starts_from_their_spread():
    kernel = unwrap(kernels.start(kernels.RBF().on([2, 0]), np.array([1.0, 5.0, 2.0]), 1.0))
    expected = np.sqrt(2) * np.array([2.0, 1.0])
    np.testing.assert_allclose(kernel.kernel.lengthscale, expected)


def test_wrong_columns_are_refused():
    with pytest.raises(ConfigurationError):
        kernels.RBF().on([])
    with pytest.raises(ConfigurationError):
        kernels.RBF().on([0, 0])
    with pytest.raises(ConfigurationError):
        kernels.start(kernels.RBF().on(2), np.ones(2), 1.0)
    with pytest.raises(ConfigurationError):
        kernels.start(kernels.RBF().on("time"), np.ones(2), 1.0)
    with pytest.raises(ConfigurationError):
        kernels.RBF().on("time").resolved(["depth"])


# -- the user's own ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Wave(kernels.Kernel):
    """A kernel of the user's: values only."""

    period: float
    weights: np.ndarray
    order: int = 2

    def matrix(self, x1, x2):
        return np.cos(self.order * ((x1 @ self.weights)[:, None] - x2 @ self.weights) / self.period)

    def diagonal(self, x):
        return np.ones(len(x))


def test_a_subclass_needs_values_only():
    x1, x2 = inputs(2)
    weights = np.random.default_rng(0).normal(size=(len(x1), len(x2)))
    kernel = kernels.start(1.5 * Wave(1.3, np.array([0.4, -0.7])), np.ones(2), 1.0)
    assert isinstance(kernel.kernel.period, Positive)
    assert isinstance(kernel.kernel.weights, Real)
    assert kernel.kernel.weights.spread == 10.0
    assert kernel.kernel.order == 2
    plain = unwrap(kernel)
    gradient = plain.pullback(x1, x2, weights)["kernel"]
    angle = (x1 @ plain.kernel.weights)[:, None] - x2 @ plain.kernel.weights
    sine = -1.5 * weights * np.sin(2 * angle / 1.3)
    np.testing.assert_allclose(gradient["period"], np.sum(sine * -2 * angle / 1.3**2), rtol=1e-7)
    columns = x1[:, None] - x2
    expected = np.sum((sine * 2 / 1.3)[..., None] * columns, axis=(0, 1))
    np.testing.assert_allclose(gradient["weights"], expected, rtol=1e-7)
    by_input = np.sum(sine * 2 / 1.3, axis=1)[:, None] * plain.kernel.weights
    np.testing.assert_allclose(plain.input_gradient(x1, x2, weights), by_input, atol=1e-7)
    assert free_gradient(kernel, plain.pullback(x1, x2, weights)).shape == (4,)


def test_a_subclass_may_hold_kernels():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Shifted(kernels.Kernel):
        parts: tuple
        shift: float

        def matrix(self, x1, x2):
            return self.parts[0].matrix(x1 - self.shift, x2 - self.shift)

        def diagonal(self, x):
            return self.parts[0].diagonal(x - self.shift)

    x1, x2 = inputs(1)
    weights = np.ones((len(x1), len(x2)))
    kernel = kernels.start(Shifted((kernels.Linear(),), 0.5), np.ones(1), 1.0)
    plain = unwrap(kernel)
    inside = plain.parts[0].pullback(x1 - 0.5, x2 - 0.5, weights)
    actual = plain.pullback(x1, x2, weights)
    assert_gradients_close(actual["parts"][0], inside)
    assert len(list(nodes_of(kernel))) == free_gradient(kernel, actual).size == 3


def test_a_subclass_is_a_dataclass():
    class Plain(kernels.Kernel):
        def __init__(self):
            object.__setattr__(self, "period", 1.0)

        def matrix(self, x1, x2):
            return np.zeros((len(x1), len(x2)))

        def diagonal(self, x):
            return np.zeros(len(x))

    with pytest.raises(ConfigurationError, match="dataclass"):
        kernels.start(Plain(), np.ones(1), 1.0)


def test_a_function_is_a_kernel():
    def bumps(x1, x2, width, height):
        squares = np.sum((x1[:, None] - x2) ** 2, axis=-1)
        return height * np.exp(-0.5 * squares / width**2)

    x1, x2 = inputs(2, 70)
    weights = np.random.default_rng(0).normal(size=(len(x1), len(x2)))
    kernel = kernels.start(
        kernels.FunctionKernel(bumps, {"width": 1, "height": fixed(2.0)}), np.ones(2), 1.0
    )
    assert free_vector(kernel).size == 1
    plain, same = unwrap(kernel), kernels.RBF(np.asarray(1.0), np.asarray(2.0))
    np.testing.assert_allclose(plain.matrix(x1, x2), same.matrix(x1, x2), rtol=1e-12)
    np.testing.assert_allclose(plain.diagonal(x1), same.diagonal(x1))
    expected = same.pullback(x1, x2, weights)
    actual = plain.pullback(x1, x2, weights)["values"]
    np.testing.assert_allclose(actual, (expected["lengthscale"], expected["variance"]), rtol=1e-7)
    np.testing.assert_allclose(
        plain.input_gradient(x1, x2, weights), same.input_gradient(x1, x2, weights), atol=1e-7
    )
    quick = kernels.FunctionKernel(
        bumps, {"width": 1.0, "height": 2.0}, lambda x, **_: np.ones(len(x))
    )
    np.testing.assert_array_equal(quick.diagonal(x1), 1.0)


def test_nothing_slow_is_imported_without_need():
    """JAX only where a kernel of tinygp is given; the others only where their work is asked for."""
    slow = [
        "jax",
        "tinygp",
        "scipy.stats",
        "scipy.spatial",
        "scipy.cluster",
        "matplotlib",
        "pandas",
    ]
    code = f"import sys, streamgp; print(*set({slow}) & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert found.stdout.split() == []
