"""Which points can go: the cost formula and the order of dropping, against dense Gaussians."""

import numpy as np
import pytest
from tests._reference import build, dense

from streamgp.inference import pruning
from streamgp.inference.learner import Learner
from streamgp.model.means import NONE, Constant

SPREAD = 2.0
FACTORISED = pytest.mark.parametrize("factorised", [False, True], ids=["joint", "factorised"])
MEANS = pytest.mark.parametrize("mean", [NONE, Constant()], ids=["no means", "levels"])
Z = np.linspace(-3, 3, 7)
SIZES = (7, 5)
OWNER = np.repeat([0, 1], SIZES)


def learned(factorised, mean):
    generator = np.random.default_rng(0)
    channels = [
        build.channel(build.gaussian(0.3), [[1.0, 0.4]], mean=mean, spread=SPREAD),
        build.channel(build.gaussian(0.5), [[-0.3, 0.8]], mean=mean, spread=SPREAD),
    ]
    learner = Learner(learning=None, factorised=factorised)
    state = learner.init(build.model(channels, (1.0, 0.7)), build.points(Z, Z[:5] + 0.2))
    x = generator.uniform(-3, 1, (30, 1))
    rows = build.rows((0, x, np.sin(x[:, 0])), (1, x[:9], np.cos(2 * x[:9, 0])))
    return learner.step(state, rows)[0]


def moments(state):
    """Prior covariance, mean and covariance of q, of all points and then of the levels."""
    grams = [
        dense.with_nugget(dense.rbf(z, z, lengthscale))
        for z, lengthscale in zip(state.points, (1.0, 0.7), strict=True)
    ]
    levels = sum(map(len, state.posterior.mean)) - sum(SIZES)
    prior = dense.block_diagonal([*grams, SPREAD**2 * np.eye(levels)])
    root = np.linalg.cholesky(prior)
    covariance = np.linalg.inv(np.eye(len(root)) + dense.block_diagonal(state.site.precision))
    mean = root @ covariance @ np.concatenate(state.site.linear)
    return prior, mean, root @ covariance @ root.T


def dense_cost(k, m, s, i):
    """KL[q(u) ‖ q(u_rest) p(u_i | u_rest)]."""
    rest = [j for j in range(len(m)) if j != i]
    a = np.linalg.solve(k[np.ix_(rest, rest)], k[rest, i])
    mean, covariance = m.copy(), s.copy()
    mean[i] = a @ m[rest]
    covariance[i, rest] = covariance[rest, i] = a @ s[np.ix_(rest, rest)]
    covariance[i, i] = k[i, i] - a @ k[rest, i] + a @ s[np.ix_(rest, rest)] @ a
    return dense.kl(m, s, mean, covariance)


@FACTORISED
@MEANS
def test_costs_are_divergences(factorised, mean):
    state = learned(factorised, mean)
    got = pruning.costs(state.prior, state.site, state.posterior)
    assert tuple(map(len, got)) == SIZES
    wanted = [dense_cost(*moments(state), i) for i in range(sum(SIZES))]
    np.testing.assert_allclose(np.concatenate(got), wanted, rtol=1e-4, atol=1e-5)


@FACTORISED
@MEANS
def test_the_cheapest_goes_first_and_the_others_are_judged_again(factorised, mean):
    state = learned(factorised, mean)
    k, m, s = moments(state)
    left = list(range(sum(SIZES)))
    budget = 4
    while len(left) > 2 * budget:
        over = [np.sum(OWNER[left] == q) > budget for q in range(2)]
        every = [*left, *range(sum(SIZES), len(m))]  # levels stay
        grid = np.ix_(every, every)
        costs = [
            dense_cost(k[grid], m[every], s[grid], i) if over[OWNER[left[i]]] else np.inf
            for i in range(len(left))
        ]
        left.pop(int(np.argmin(costs)))
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
