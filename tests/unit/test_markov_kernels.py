"""Kernels of one input with states: oscillators, CARMA, waves, smooth approximations."""

import numpy as np
import pytest

import streamgp as sgp
from streamgp import kernels
from streamgp.errors import ConfigurationError

X = np.array([-0.4, -0.1, 0.0, 0.02, 0.5, 0.9, 2.0, 2.3, 7.0])[:, None]
OTHERS = np.array([-1.0, 0.013, 0.7, 3.1])[:, None]
QUALITIES = [0.05, 0.3, 0.499999, 0.5, 0.500001, 0.7, 20.0]

DRIVEN = {
    **{f"quality {q}": kernels.SHO(3.0, q, 1.3) for q in QUALITIES},
    "carma 1 0": kernels.CARMA([0.7], (), 1.2),
    "carma 2 1": kernels.CARMA([4.0, 0.5], [1.0], 1.2),
    "carma 2 0, critical": kernels.CARMA([1.0, 2.0], (), 1.2),
    "carma 4 2": kernels.CARMA([4.0, 0.5, 1.0, 2.0], [3.0, 0.4], 0.7),
    **{f"order {n}": kernels.MarkovRBF(1.7, 0.9, n) for n in (2, 5, 6, 12)},
}
ALL = DRIVEN | {"cosine": kernels.Cosine(2.3, 0.8)}


def differences(total, values, step=1e-5):
    """The derivative of a function of named numbers by each entry of them."""
    found = {}
    for name, value in values.items():
        value = np.asarray(value, float)
        by = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            move = np.zeros(value.shape)
            move[index] = step * value[index]
            ends = [total(values | {name: value + sign * move}) for sign in (1, -1)]
            by[index] = (ends[0] - ends[1]) / (2 * move[index])
        found[name] = by
    return found


def numbers(kernel):
    return {
        name: getattr(kernel, name)
        for name in kernel.__dataclass_fields__
        if name != "order" and np.size(getattr(kernel, name))
    }


def with_numbers(kernel, values):
    order = {"order": kernel.order} if isinstance(kernel, kernels.MarkovRBF) else {}
    return type(kernel)(**values, **order)


@pytest.mark.parametrize("name", ALL)
def test_gradients_are_those_of_differences(name):
    kernel = ALL[name]
    weights = np.random.default_rng(0).normal(size=(len(X), len(OTHERS)))
    by_differences = differences(
        lambda values: np.vdot(weights, with_numbers(kernel, values).matrix(X, OTHERS)),
        numbers(kernel),
    )
    found = kernel.pullback(X, OTHERS, weights)
    for parameter, wanted in by_differences.items():
        np.testing.assert_allclose(found[parameter], wanted, rtol=1e-6, atol=1e-7)
    own = np.random.default_rng(1).normal(size=len(X))
    of_diagonal = kernel.diagonal_pullback(X, own)
    np.testing.assert_allclose(of_diagonal["variance"], own.sum())
    step = 1e-6
    change = kernel.matrix(X + step, OTHERS) - kernel.matrix(X - step, OTHERS)
    slope = np.sum(weights * change, axis=1, keepdims=True) / (2 * step)
    np.testing.assert_allclose(kernel.input_gradient(X, OTHERS, weights), slope, atol=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_matrices_are_symmetric_and_positive(name):
    matrix = ALL[name].matrix(X, X)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(np.diag(matrix), ALL[name].diagonal(X), rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-13


@pytest.mark.parametrize("name", DRIVEN)
@pytest.mark.parametrize("gap", [1e-9, 1e-4, 0.1, 30.0])
def test_noise_is_composed_of_that_over_shorter_gaps(name, gap):
    """Q(2g) = A(g)·Q(g)·A(g)ᵀ + Q(g), to the last digits of every entry while gaps are short."""
    (state,) = DRIVEN[name].state_space()
    stationary, (a,), (q,) = state.moves(np.array([gap]))
    _, (far,), (twice,) = state.moves(np.array([2 * gap]))
    scale = 1 / np.sqrt(np.diag(twice))
    unit = twice * scale[:, None] * scale
    composed = (a @ q @ a.T + q) * scale[:, None] * scale
    np.testing.assert_allclose(composed, unit, atol=1e-12)
    np.testing.assert_allclose(far, a @ a, atol=1e-12 * np.abs(far).max())
    assert np.linalg.eigvalsh(unit).min() > 0
    scale = 1 / np.sqrt(np.diag(stationary))
    rest = stationary - far @ stationary @ far.T
    np.testing.assert_allclose(
        twice * scale[:, None] * scale, rest * scale[:, None] * scale, atol=1e-10
    )


# -- against each other ----------------------------------------------------------------------------


def same(one, other, **tolerance):
    np.testing.assert_allclose(
        one.matrix(X, OTHERS), other.matrix(X, OTHERS), **({"atol": 1e-13} | tolerance)
    )


def test_special_cases():
    same(kernels.SHO(2 * np.pi, 0.5, 1.3), kernels.Matern32(np.sqrt(3), 1.3))
    same(kernels.CARMA([0.5], (), 1.3), kernels.Matern12(2.0, 1.3))
    same(kernels.CARMA([4.0, 0.5], (), 1.3), kernels.SHO(np.pi, 4.0, 1.3))
    root5 = np.sqrt(5)
    same(kernels.CARMA.of([root5**3, 3 * 5.0, 3 * root5], variance=1.3), kernels.Matern52(1.0, 1.3),
         atol=1e-10)  # fmt: skip
    same(kernels.SHO(3.0, 1e7, 0.8), kernels.Cosine(3.0, 0.8), atol=1e-6)


@pytest.mark.parametrize(("order", "error"), [(4, 0.022), (6, 0.0043), (8, 0.00092), (10, 0.00021)])
def test_an_approximation_has_the_error_that_its_page_states(order, error):
    t = np.linspace(0, 10, 2001)[:, None]
    exact = kernels.RBF(1.0, 1.0).matrix(t, t[:1])
    found = np.abs(kernels.RBF(1.0, 1.0).as_markov(order).matrix(t, t[:1]) - exact).max()
    assert 0.9 * error < found < error


def test_coefficients_become_factors():
    alpha, beta = [2.8, 4.35, 1.2], [3.0, 2.0]  # (s² + s/2 + 4)(s + 0.7) and 2(s + 1.5)
    kernel = kernels.CARMA.of(alpha, beta)
    np.testing.assert_allclose(kernel.autoregressive, [4.0, 0.5, 0.7])
    np.testing.assert_allclose(kernel.moving_average, [1.5])
    mirrored = kernels.CARMA.of(alpha, [3.0, -2.0])  # the same spectrum
    np.testing.assert_allclose(mirrored.moving_average, [1.5])
    two_real = kernels.CARMA.of([6.0, 5.0], [1.0])
    np.testing.assert_allclose(two_real.autoregressive, [6.0, 5.0])


@pytest.mark.parametrize("alpha", [[1.0, -0.5], [-1.0], [1.0, 0.0]])
def test_processes_that_are_not_stationary_are_refused(alpha):
    with pytest.raises(ConfigurationError, match="stationary"):
        kernels.CARMA.of(alpha)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: kernels.CARMA([1.0], [1.0]), "shorter"),
        (lambda: kernels.CARMA(1.0), "list"),
        (lambda: kernels.RBF(1.0).as_markov(1), "order from 2 to 12"),
        (lambda: kernels.RBF(1.0).as_markov(6.5), "order from 2 to 12"),
    ],
)
def test_wrong_settings_are_refused(make, words):
    with pytest.raises(ConfigurationError, match=words):
        make()


# -- in models -------------------------------------------------------------------------------------

GIVEN = {
    "oscillator": sgp.SHO(),
    "carma": sgp.CARMA([4.0, 0.5], [1.0]),
    "waves": kernels.Cosine(period=3.0),
    "smooth": sgp.RBF().as_markov(),
    "sum": sgp.SHO(period=2.0) + 0.5 * sgp.CARMA([1.0]),
    "product": kernels.Cosine(period=sgp.fixed(3.0)) * sgp.RBF(5.0).as_markov(4),
}


@pytest.mark.parametrize("name", GIVEN)
def test_models_learn_on_chains_are_saved_and_go_on(name, tmp_path):
    x = np.linspace(0, 12, 90)
    y = np.sin(2 * np.pi * x / 3) + 0.05 * np.random.default_rng(2).normal(size=90)
    model = sgp.ContinualGP(
        sgp.Gaussian(), latents=GIVEN[name], learning=sgp.VEM(evaluations=6, every=30)
    )
    for k in range(0, 90, 30):
        assert np.isfinite(model.update(x[k : k + 30], y[k : k + 30]).bound)
    assert model.engine == "chain"
    model.save(tmp_path / "model.sgp")
    again = sgp.load(tmp_path / "model.sgp")
    for one in (model, again):
        one.update(x[:5] + 12.5, y[:5], learn=False)
    for part in ("mean", "variance"):
        np.testing.assert_allclose(
            getattr(again.predict(x), part), getattr(model.predict(x), part), rtol=1e-9, atol=1e-12
        )


def test_a_smooth_kernel_is_on_a_chain_by_choice_only():
    x = np.linspace(0, 5, 30)
    for kernel, engine in ((sgp.RBF(), "dense"), (sgp.RBF().as_markov(), "chain")):
        model = sgp.ContinualGP(sgp.Gaussian(), latents=kernel, learning=None)
        model.update(x, np.sin(x))
        assert model.engine == engine
    with pytest.raises(ConfigurationError, match="as_markov"):
        sgp.ContinualGP(sgp.Gaussian(), latents=sgp.RBF(), engine="chain").update(x, np.sin(x))


def test_an_oscillator_learns_its_period():
    x, noise = np.arange(0, 40, 0.2), np.random.default_rng(3)
    y = np.sin(2 * np.pi * x / 2.5) + 0.3 * noise.normal(size=len(x))
    model = sgp.ContinualGP(sgp.Gaussian(), latents=sgp.SHO(period=2.0, quality=5.0))
    for k in range(0, len(x), 50):
        model.update(x[k : k + 50], y[k : k + 50])
    learned = model.hyperparameters["latents"][0]
    assert abs(float(learned["period"]) - 2.5) < 0.05
    ahead = np.arange(40, 45, 0.2)
    assert np.mean((model.predict(ahead).mean - np.sin(2 * np.pi * ahead / 2.5)) ** 2) < 0.1


@pytest.mark.parametrize("engine", ["chain", "dense", "sparse"])
def test_the_engines_agree(engine):
    """The same kernel on any engine is the exact GP."""
    x = np.linspace(0, 6, 25)
    y = np.cos(x)
    kernel = kernels.CARMA([4.0, 0.5, 1.0, 2.0], [3.0, 0.4], 0.7)
    options = {"inducing": sgp.Fixed(x)} if engine == "sparse" else {}
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=sgp.fixed(0.3)), latents=kernel, learning=None, scale=False, mean=None,
        engine=engine, **options,
    )  # fmt: skip
    model.update(x, y)
    test = x[::4] + 0.0
    gain = kernel.matrix(test[:, None], x[:, None]) @ np.linalg.inv(
        kernel.matrix(x[:, None], x[:, None]) + 0.09 * np.eye(25)
    )
    np.testing.assert_allclose(model.predict(test).mean, gain @ y, atol=1e-8)


@pytest.mark.parametrize("name", ["oscillator", "carma", "waves", "smooth"])
def test_several_inputs_need_a_choice_of_one(name):
    x = np.random.default_rng(4).normal(size=(20, 2))
    with pytest.raises(ConfigurationError, match=r"\.on\(column\)"):
        sgp.ContinualGP(sgp.Gaussian(), latents=GIVEN[name]).update(x, x[:, 0])
    model = sgp.ContinualGP(sgp.Gaussian(), latents=GIVEN[name].on(1), learning=None)
    model.update(x, x[:, 1])
    assert np.isfinite(model.predict(x).mean).all()
