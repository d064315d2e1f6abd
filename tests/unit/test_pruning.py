"""Which points can go: the cost formula and the order of dropping, against dense Gaussians."""

import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.inference.sparse import pruning
from streamgp.inference.sparse.learner import Learner
from streamgp.model.means import NONE, Constant

SPREAD = 2.0
MEANS = pytest.mark.parametrize("mean", [NONE, Constant()], ids=["no means", "levels"])
Z = np.linspace(-3, 3, 7)
SIZES = (7, 5)
OWNER = np.repeat([0, 1], SIZES)


def learned(mean):
    generator = np.random.default_rng(0)
    channels = [
        build.channel(build.gaussian(0.3), [[1.0, 0.4]], mean=mean, spread=SPREAD),
        build.channel(build.gaussian(0.5), [[-0.3, 0.8]], mean=mean, spread=SPREAD),
    ]
    learner = Learner(learning=None)
    state = learner.init(build.model(channels, (1.0, 0.7)), build.points(Z, Z[:5] + 0.2))
    x = generator.uniform(-3, 1, (30, 1))
    rows = build.rows((0, x, np.sin(x[:, 0])), (1, x[:9], np.cos(2 * x[:9, 0])))
    return learner.step(state, rows)[0]


def known(state):
    """Prior covariance of all points and then of the levels, and the site on them: K, λ, Λ."""
    grams = [
        dense.with_nugget(dense.rbf(z, z, lengthscale))
        for z, lengthscale in zip(state.points, (1.0, 0.7), strict=True)
    ]
    levels = len(state.posterior.mean) - sum(SIZES)
    prior = dense.block_diagonal([*grams, SPREAD**2 * np.eye(levels)])
    inverse = np.linalg.inv(np.linalg.cholesky(prior))
    linear = inverse.T @ state.site.linear
    return prior, linear, inverse.T @ state.site.precision @ inverse


def evidence(k, linear, precision):
    """log ∫ N(u; 0, K) exp(λᵀu − ½uᵀΛu) du."""
    inner = np.eye(len(k)) + precision @ k
    return 0.5 * linear @ k @ np.linalg.solve(inner, linear) - 0.5 * np.linalg.slogdet(inner)[1]


def without(k, linear, precision, i):
    """K, λ, Λ without u_i: E[log t(u) | u_rest] in place of log t(u), and what it has beside."""
    rest = [j for j in range(len(k)) if j != i]
    gain = k[:, rest] @ np.linalg.inv(k[np.ix_(rest, rest)])
    left = k - gain @ k[rest]
    site = gain.T @ linear, gain.T @ precision @ gain
    return (k[np.ix_(rest, rest)], *site), -0.5 * np.sum(precision * left)


def dense_cost(everything, i):
    """What the bound loses with u_i."""
    fewer, beside = without(*everything, i)
    return evidence(*everything) - evidence(*fewer) - beside


@MEANS
def test_costs_are_losses_of_the_bound(mean):
    state = learned(mean)
    got = pruning.costs(state.prior, state.site, state.posterior)
    assert tuple(map(len, got)) == SIZES
    wanted = [dense_cost(known(state), i) for i in range(sum(SIZES))]
    np.testing.assert_allclose(np.concatenate(got), wanted, rtol=1e-4, atol=1e-5)


@MEANS
def test_the_cheapest_goes_first_and_the_others_are_judged_again(mean):
    state = learned(mean)
    everything, left, budget = known(state), list(range(sum(SIZES))), 4
    while len(left) > 2 * budget:
        over = [np.sum(OWNER[left] == q) > budget for q in range(2)]
        costs = [
            dense_cost(everything, i) if over[OWNER[left[i]]] else np.inf for i in range(len(left))
        ]
        cheapest = int(np.argmin(costs))
        everything, _ = without(*everything, cheapest)
        left.pop(cheapest)
    kept = pruning.prune(state.prior, state.site, state.posterior, budget)
    np.testing.assert_array_equal(np.flatnonzero(np.concatenate(kept)), left)


def test_spare_points_go_below_the_budget_too():
    """Those that the others explain: a point that stands twice, but for a hair's breadth."""
    learner = Learner(learning=None)
    state = learner.init(build.one_gaussian(), build.points([-2.0, 0.0, 0.001, 2.0]))
    state, _ = learner.step(state, build.rows((0, [-1.0, 1.0], [0.0, 1.0])))
    everything = (state.prior, state.site, state.posterior, 10)
    assert np.all(pruning.prune(*everything)[0])
    kept = pruning.prune(*everything, spare=1e-3)[0]
    assert kept.tolist().count(True) == 3
    assert kept[0]
    assert kept[3]


@MEANS
def test_costs_of_the_others_once_some_are_gone(mean):
    state = learned(mean)
    search, everything = pruning._Search(state.prior, state.site, state.posterior), known(state)
    left = list(range(sum(SIZES)))
    for gone in (3, 8, 0):
        search.drop(gone)
        everything, _ = without(*everything, left.index(gone))
        left.remove(gone)
    wanted = [dense_cost(everything, i) for i in range(len(left))]
    np.testing.assert_allclose(search.costs()[left], wanted, rtol=1e-4, atol=1e-5)
