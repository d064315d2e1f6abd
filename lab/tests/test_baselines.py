"""Every baseline against dense algebra, and every gradient against differences."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import cho_factor, cho_solve

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp.parameters import Positive, free_vector, unwrap, with_free
from streamgp_lab.baselines import collapsed, gradients, paper, streaming_sparse
from streamgp_lab.baselines.core import literal_model, start_model
from streamgp_lab.baselines.exact import Exact, evidence
from streamgp_lab.baselines.independent import Independent
from streamgp_lab.baselines.paper import Paper
from streamgp_lab.baselines.streaming_sparse import StreamingSparse
from streamgp_lab.problem import rows

GENERATOR = np.random.default_rng(0)
X = np.sort(GENERATOR.uniform(0, 6, 40))
Y = 3 + np.sin(X) + 0.2 * GENERATOR.normal(size=40)
AT = np.linspace(0, 6, 15)
KERNEL = sgp.RBF(lengthscale=sgp.fixed(1.3), variance=sgp.fixed(0.8))
LIKELIHOOD = sgp.Gaussian(sgp.fixed(0.25))
FIXED = Specification({"y": LIKELIHOOD}, [KERNEL], mean=None)


@dataclasses.dataclass(frozen=True)
class Slope(sgp.Mean):
    """A straight line through 3."""

    spreads = (0.5,)

    def __call__(self, x):
        return x - 3


def gram(a, b):
    return 0.8 * np.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / 1.3**2)


def dense(x, y, offset):
    """Mean and variance of f at AT given data, by the textbook formulas."""
    factor = cho_factor(gram(x, x) + 0.25**2 * np.eye(len(x)))
    cross = gram(x, AT)
    mean = offset + cross.T @ cho_solve(factor, y - offset)
    return mean, 0.8 - np.sum(cross * cho_solve(factor, cross), axis=0)


def assert_is(prediction, wanted, tolerance):
    np.testing.assert_allclose(prediction.latent_mean, wanted[0], atol=tolerance)
    np.testing.assert_allclose(prediction.latent_variance, wanted[1], atol=tolerance)


def assert_is_gradient(function, at, step=1e-5, tolerance=1e-6):
    """The second part of what `function` returns is the gradient of the first."""
    gradient = function(at)[1]
    for i, unit in enumerate(step * np.eye(len(at))):
        difference = (function(at + unit)[0] - function(at - unit)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(difference, rel=tolerance, abs=tolerance)


def test_the_exact_gp_equals_the_textbook_after_one_and_two_batches():
    method = Exact(FIXED)
    method.update({"y": (X[:15], Y[:15])})
    assert_is(method.predict(AT), dense(X[:15], Y[:15], Y[:15].mean()), 1e-8)
    method.update({"y": (X[15:], Y[15:])})
    assert_is(method.predict(AT), dense(X, Y, Y[:15].mean()), 1e-8)


def test_the_exact_gp_scores_samples_by_those_before_them():
    method, other = Exact(FIXED), Exact(FIXED)
    for each in (method, other):
        each.update({"y": (X[:30], Y[:30])})
    scores = method.update_many(X[30:], Y[30:]).log_predictive_rows["y"]
    for i in range(30, 40):
        wanted = other.predict(X[i : i + 1]).log_density(Y[i])
        np.testing.assert_allclose(scores[i - 30], wanted[0], atol=1e-8)
        other.update({"y": (X[i : i + 1], Y[i : i + 1])})


def test_the_exact_gp_finds_more_likely_hyperparameters():
    free = Specification({"y": sgp.Gaussian()}, [sgp.RBF()])
    still, moved = Exact(free, evaluations=0), Exact(free)
    evidence = []
    for method in (still, moved):
        method.update({"y": (X, Y)})
        again = Exact(free, start=method.model, evaluations=0)
        evidence.append(again.update_many(X, Y).log_predictive_rows["y"].sum())
    assert evidence[1] > evidence[0] + 1


def test_the_gradient_of_the_exact_evidence():
    channels = {"a": sgp.Gaussian(), "b": sgp.LogNormal()}
    kernels = [(sgp.Matern32(), 2), (sgp.RBF(), 1)]
    specification = Specification(channels, kernels, mean=sgp.Constant(5.0))
    data = {"a": (X, Y), "b": (X[::3], Y[::3])}
    model, known = start_model(specification, data), rows(specification.names, data)
    start = free_vector(model)
    assert len(start) == 12
    assert_is_gradient(lambda theta: evidence(known, with_free(model, theta)), start)


def test_exact_channels_have_levels_that_are_integrated_out():
    """Three channels of two functions, beside the covariance of everything written down."""
    weights, noises = np.array([[0.7, -1.1], [1.3, 0.4], [0.2, 0.9]]), (0.2, 0.3, 0.1)
    spreads = np.array([[2.0, 0.0], [5.0, 0.5], [0.0, 0.0]])  # of 1 and x − 3
    specification = Specification(
        {name: sgp.Gaussian(sgp.fixed(noise)) for name, noise in zip("abc", noises, strict=True)},
        [(KERNEL, 2)],
        mixing={name: sgp.fixed(own[None]) for name, own in zip("abc", weights, strict=True)},
        mean={"a": sgp.Constant(2.0), "b": sgp.Constant(5.0) + Slope(), "c": None},
    )
    data = {"a": (X, 8 + Y), "b": (X[::2], -40 + 3 * X[::2]), "c": (X[::5], Y[::5])}
    method = Exact(specification)
    method.update(data)
    x, y = (np.concatenate([data[name][part] for name in "abc"]) for part in (0, 1))
    channel = np.repeat(np.arange(3), [len(data[name][0]) for name in "abc"])
    offset = np.array([data[name][1].mean() for name in "abc"])

    def covariance(x, c, other, d):
        of_means = spreads[c, None, 0] * spreads[d, 0]
        of_means = of_means + np.outer((x - 3) * spreads[c, 1], (other - 3) * spreads[d, 1])
        shared = (weights[c] @ weights[d].T) * gram(x, other)
        return shared + np.where(c[:, None] == d, of_means, 0.0)

    total = covariance(x, channel, x, channel) + np.diag(np.array(noises)[channel] ** 2)
    at = np.linspace(-2, 12, 9)
    for index, name in enumerate("abc"):
        d = np.full(9, index)
        cross = covariance(x, channel, at, d)
        solved = np.linalg.solve(total, np.column_stack([y - offset[channel], cross]))
        mean = offset[index] + cross.T @ solved[:, 0]
        variance = np.diag(covariance(at, d, at, d)) - np.sum(cross * solved[:, 1:], axis=0)
        found = method.predict(at, name)
        np.testing.assert_allclose(found.latent_mean, mean, rtol=1e-7)
        np.testing.assert_allclose(found.latent_variance, variance, rtol=1e-6)


def test_the_exact_gp_is_our_model_with_one_point_per_input():
    """With the same hyperparameters, levels included; the far end returns to the level."""
    model = sgp.ContinualGP(
        LIKELIHOOD, latents=[KERNEL], inducing=sgp.Fixed(X), learning=None, mean=sgp.Constant(50.0)
    )
    model.update(X, Y)
    exact = Exact(FIXED, start=model.state.model, evaluations=0)
    exact.update({"y": (X, Y)})
    at = np.linspace(-20, 30, 21)
    wanted = model.predict(at)
    assert_is(exact.predict(at), (wanted.latent_mean, wanted.latent_variance), 1e-5)


def test_the_best_of_several_starts_is_kept():
    specification = Specification({name: sgp.Gaussian() for name in "ab"}, 2, seed=1)
    data = {"a": (X, Y), "b": (X[::2], np.cos(2 * X[::2]) - Y[::2])}
    known, values = rows(specification.names, data), []
    for starts in (1, 3):
        method = Exact(specification, starts=starts)
        method.update(data)
        values.append(evidence(known, method.model)[0])
    alone = Exact(Specification(specification.channels, 2, seed=3), starts=1)
    alone.update(data)
    values.append(evidence(known, alone.model)[0])
    assert values[1] >= max(values) - 1e-9


def test_two_exact_channels_share_what_they_have_in_common():
    specification = Specification({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, 1)
    method = Exact(specification)
    method.update({"a": (X, Y), "b": (X[::4], 10 * Y[::4])})
    assert np.abs(method.predict(AT, "b").mean - 10 * (3 + np.sin(AT))).max() < 3


def test_the_exact_gp_refuses_what_it_cannot_do():
    with pytest.raises(sgp.ConfigurationError, match="Gaussian channels"):
        Exact(Specification({"y": sgp.Poisson()}))


def test_streaming_sparse_with_one_point_per_input_is_the_exact_gp():
    method = StreamingSparse(LIKELIHOOD, KERNEL, points={1: 15, 2: 40}.get)
    method._learn = False  # points stay at the inputs
    method.update({"y": (X[:15], Y[:15])})
    assert_is(method.predict(AT), dense(X[:15], Y[:15], Y[:15].mean()), 1e-5)
    method.update({"y": (X[15:], Y[15:])})
    assert_is(method.predict(AT), dense(X, Y, Y[:15].mean()), 1e-5)


def test_streaming_sparse_keeps_what_it_learned():
    method = StreamingSparse(sgp.Bernoulli(), points=lambda t: 5 * t)
    labels = (np.sin(2 * X) > 0).astype(float)
    for part in np.array_split(np.arange(40), 2):
        method.update({"y": (X[part], labels[part])})
    assert len(method.inducing_points[0]) == 10
    assert np.mean((method.predict(X).mean > 0.5) == labels) > 0.9


@pytest.mark.parametrize(
    "likelihood", [sgp.Gaussian(), sgp.Bernoulli(), sgp.HeteroscedasticGaussian()]
)
@pytest.mark.parametrize("kernel", [sgp.RBF(), sgp.Matern32() + sgp.Linear()])
def test_the_gradient_of_the_streaming_bound(likelihood, kernel):
    """By hyperparameters and by points, for sites that are not at their optimum."""
    y = (Y > 3).astype(float) if likelihood.classes else Y
    method = StreamingSparse(likelihood, kernel, points=lambda t: 4, rounds=2, evaluations=5)
    method.update({"y": (X[:20], y[:20])})
    kept = method._kept
    batch = rows(["y"], {"y": (X[20:], y[20:])})
    task, points = streaming_sparse.Task(kept, batch), np.linspace(0.3, 6, 6)[:, None]
    model = with_free(kept.model, free_vector(kept.model) + 0.1)
    held = task.trial(model, points).first_sites()
    held = held._replace(linear=held.linear + 0.1)

    def in_parameters(theta):
        return task.bound(task.trial(with_free(model, theta), points), held)[:2]

    def in_points(z):
        value, _, by_points = task.bound(task.trial(model, z[:, None]), held)
        return value, by_points[:, 0]

    assert_is_gradient(in_parameters, free_vector(model))
    assert_is_gradient(in_points, points[:, 0])


def test_the_streaming_bound_is_the_evidence_with_one_point_per_input():
    """Its value too, for it has no other error then; but for the evidence of the past."""
    method = StreamingSparse(LIKELIHOOD, KERNEL, points=lambda t: 15)
    method._learn = False
    method.update({"y": (X[:15], Y[:15])})
    kept = method._kept
    task = streaming_sparse.Task(kept, rows(["y"], {"y": (X[15:], Y[15:])}))
    trial = task.trial(kept.model, X[:, None])
    value = task.bound(trial, trial.first_sites())[0]
    exact = Exact(FIXED, start=kept.model, evaluations=0)
    exact.update({"y": (X[:15], Y[:15])})
    wanted = exact.update_many(X[15:], Y[15:]).log_predictive_rows["y"].sum()
    past = streaming_sparse.Posterior.of(kept.site).log_evidence
    assert value - past == pytest.approx(wanted, abs=1e-4)


def papers_task(channels, latents):
    """A second batch, at other points than the first."""
    specification = Specification(channels, latents)
    method = Paper(specification, points=lambda t: 5, rounds=1, iterations=5)
    method.update({name: (X[:20], np.round(Y[:20])) for name in channels})
    kept, generator = method._kept, np.random.default_rng(1)
    points = (np.linspace(0, 6, 6)[:, None],) * sum(specification.draws)
    q = method._random(points)
    q = q._replace(half=np.tril(q.half + 0.1 * generator.normal(size=q.half.shape)))
    data = {name: (X[15:], np.round(Y[15:])) for name in list(channels)[:2]}
    batch = rows(specification.names, data)
    model = with_free(kept.model, free_vector(kept.model) + 0.1)
    return paper.Task.of(batch, points, kept), q, model


@pytest.mark.parametrize(
    ("channels", "latents"),
    [
        ({"y": sgp.Gaussian()}, [sgp.Matern32()]),
        (
            {"a": sgp.Gaussian(), "b": sgp.Poisson(), "c": sgp.HeteroscedasticGaussian()},
            [(sgp.RBF(), 2)],
        ),
    ],
)
def test_the_gradients_of_the_papers_bound(channels, latents):
    task, q, model = papers_task(channels, latents)
    for each in (task, task._replace(past=[[] for _ in task.points])):
        assert_is_gradient(each.in_moments(q, model), q.vector)
        assert_is_gradient(each.in_parameters(q, model), free_vector(model))


def divergence(mean, half, chol, other=0.0):
    """KL[N(mean, half·halfᵀ) ‖ N(other, chol·cholᵀ)], by the textbook."""
    own, reference, shift = half @ half.T, chol @ chol.T, mean - other
    logs = np.linalg.slogdet(reference)[1] - np.linalg.slogdet(own)[1]
    solved = np.linalg.solve(reference, np.column_stack([own, shift]))
    return 0.5 * (np.trace(solved[:, :-1]) + shift @ solved[:, -1] - len(mean) + logs)


def test_the_papers_bound_is_equation_10():
    """What rows say is expected over draws of q, the divergences are those of the textbook."""
    task, q, model = papers_task({"y": sgp.Gaussian()}, [sgp.RBF()])
    here, plain = paper.Here.of(model, task.points, task.batch.x), unwrap(model)
    [function], noise = here.functions, float(plain.channels[0].likelihood.noise)
    pull = np.linalg.solve(function.chol @ function.chol.T, here.seen[0].cross)  # K⁻¹K(Z, x)
    mean = plain.channels[0].offset + pull.T @ q.mean[0]
    explained = np.sum(pull * (function.chol @ function.chol.T @ pull), axis=0)
    left = function.kernel.diagonal(here.seen[0].x) - explained
    variance = left + np.sum((q.half[0].T @ pull) ** 2, axis=0)
    log_density = stats.norm.logpdf(task.batch.y[:, 0], mean, noise)
    said = np.sum(log_density - 0.5 * variance / noise**2)
    fresh = said - divergence(q.mean[0], q.half[0], function.chol)
    old, continual = (divergence(q.mean[0], q.half[0], r.chol, r.mean) for r in task.past[0])
    wanted = fresh + old - continual
    assert task.by_moments(q, here)[0] == pytest.approx(wanted, rel=1e-6)
    assert task.by_parameters(q, here)[0] == pytest.approx(wanted, rel=1e-6)
    first = task._replace(past=[[]])
    assert first.by_moments(q, here)[0] == pytest.approx(fresh, rel=1e-6)


def test_the_papers_bound_has_the_exact_posterior_at_its_top():
    """With fixed hyperparameters and the same points for both batches, q is the exact posterior."""
    method = Paper(FIXED, points=lambda t: 9, rounds=1, iterations=3000)
    method._low, method._high = X.min(), X.max()  # the same grid both times
    method.update({"y": (X[::2], Y[::2])})
    assert_is(method.predict(AT), dense(X[::2], Y[::2], Y[::2].mean()), 2e-2)
    method.update({"y": (X[1::2], Y[1::2])})
    both = (np.concatenate([v[::2], v[1::2]]) for v in (X, Y))
    assert_is(method.predict(AT), dense(*both, Y[::2].mean()), 2e-2)


def test_the_papers_algorithm_takes_several_channels():
    channels = {"a": sgp.Gaussian(sgp.fixed(0.2)), "b": sgp.Poisson()}
    method = Paper(
        Specification(channels, [sgp.RBF()] * 2), points=lambda t: 4 * t, rounds=1, iterations=10
    )
    method.update({"a": (X[:20], Y[:20]), "b": (X[:20], np.round(Y[:20]))})
    method.update({"b": (X[20:], np.round(Y[20:]))})
    assert [len(z) for z in method.inducing_points] == [8, 8]
    assert np.isfinite(method.predict(AT, "a").mean).all()
    scores = method.update_many  # samples belong to the first channel
    assert np.isfinite(scores(X[20:22], Y[20:22]).log_predictive_rows["a"]).all()


def test_independent_channels_do_not_share_data():
    both = Independent({name: sgp.ContinualGP(sgp.Gaussian()) for name in "ab"})
    both.update({"a": (X, Y), "b": (X, -Y)})
    alone = sgp.ContinualGP(sgp.Gaussian())
    alone.update(X, Y)
    np.testing.assert_array_equal(both.predict(AT, "a").mean, alone.predict(AT).mean)
    assert len(both.inducing_points) == 2


# Means and variances of f at three inputs, from an implementation with automatic derivatives.
KNOWN = {
    "exact": [[29.49698, 30.69256, 26.81362], [0.70423, 0.46098, 1.56084]],
    "streaming sparse, Gaussian": [[3.11327, 3.08393, 2.80904], [0.01219, 0.00604, 0.02065]],
    "streaming sparse, Bernoulli": [[4.04996, 0.13323, -4.0182], [3.74913, 1.49664, 5.07627]],
}


def their_kernel(x):
    """A kernel that starts where theirs did, with the same prior."""
    spread = np.std(x, keepdims=True)
    return sgp.RBF(lengthscale=Positive(0.25 * spread, centre=spread, spread=1.5))


@pytest.mark.parametrize("name", KNOWN)
def test_results_are_those_of_another_implementation(name, monkeypatch):
    monkeypatch.setattr(gradients, "FLAT", 1e-5)  # where the other one stopped
    if name == "exact":
        kernel = their_kernel(np.concatenate([X, X[::4]]))
        specification = Specification({"a": sgp.Gaussian(), "b": sgp.Gaussian()}, [kernel])
        data = {"a": (X, Y), "b": (X[::4], 10 * Y[::4])}
        method = Exact(specification, start=literal_model(specification, data))
        method.update(data)
        found = method.predict(AT, "b")
    else:
        binary = name.endswith("Bernoulli")
        y = (np.sin(2 * X) > 0).astype(float) if binary else Y
        likelihood = sgp.Bernoulli() if binary else sgp.Gaussian()
        sparse = StreamingSparse(likelihood, their_kernel(X[:20]), points=lambda t: 5 * t)
        for part in np.array_split(np.arange(40), 2):
            sparse.update({"y": (X[part], y[part])})
        found = sparse.predict(AT)
    got = np.stack([found.latent_mean, found.latent_variance])[:, [0, 7, 14]]
    np.testing.assert_allclose(got, KNOWN[name], rtol=2e-3)


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(90, 3))
    return x, 2 + np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.1 * generator.normal(size=90)


@pytest.fixture
def collapsed_parameters(table):
    x, _ = table
    return collapsed.Parameters(np.array([1.0, 2.0, 0.7]), 1.3, 0.4, 0.2, x[:7] + 0.1)


def test_the_collapsed_bound_is_that_of_titsias(table, collapsed_parameters):
    (x, y), own = table, collapsed_parameters
    across = own.kernel(own.points, x)
    low_rank = across.T @ np.linalg.solve(own.of_points(), across)
    evidence = stats.multivariate_normal(
        np.full(90, own.mean), low_rank + own.noise * np.eye(90)
    ).logpdf(y)
    expected = evidence - 0.5 * (90 * own.variance - np.trace(low_rank)) / own.noise
    found, _ = collapsed.bound_and_gradient(own, x, y)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("block", [4096, 17])
def test_the_gradient_of_the_collapsed_bound(table, collapsed_parameters, monkeypatch, block):
    """By hyperparameters, noise, mean and points, whatever the number of blocks."""
    monkeypatch.setattr(collapsed, "_BLOCK", block)
    own, step = collapsed_parameters, 1e-6

    def bound(vector):
        return collapsed.bound_and_gradient(own.replaced(vector), *table)[0]

    _, gradient = collapsed.bound_and_gradient(own, *table)
    vector = own.vector()
    differences = [
        (bound(vector + step * way) - bound(vector - step * way)) / (2 * step)
        for way in np.eye(len(vector))
    ]
    np.testing.assert_allclose(gradient, differences, atol=1e-5)


def test_the_collapsed_gp_with_a_point_per_row_is_exact(table, collapsed_parameters):
    x, y = table
    own = collapsed_parameters._replace(points=x)
    new = x[:5] + 0.2
    mean, variance = collapsed.posterior(own, x, y).predict(new)
    gain = np.linalg.solve(own.kernel(x, x) + own.noise * np.eye(90), own.kernel(x, new)).T
    np.testing.assert_allclose(mean, own.mean + gain @ (y - own.mean), rtol=1e-5)
    explained = np.sum(gain * own.kernel(new, x), axis=1)
    np.testing.assert_allclose(variance, own.variance + own.noise - explained, rtol=1e-5)


def test_the_collapsed_gp_learns(table):
    x, y = table
    model = collapsed.CollapsedGP(points=15).fit(x[:70], y[:70])
    mean, variance = model.predict(x[70:])
    assert np.sqrt(np.mean((mean - y[70:]) ** 2)) < 0.25
    assert (variance > 0).all()
    unused = model.parameters.lengthscales[2]
    assert unused > 3 * model.parameters.lengthscales[0]
    with pytest.raises(ValueError, match="fit"):
        collapsed.CollapsedGP().predict(x)
