"""Which points can go: the cost formula and the order of dropping, against dense Gaussians."""

import equinox as eqx
import numpy as np
import paramax
import pytest
from tests._reference import build, dense

from streamgp.data import pack
from streamgp.inference import pruning
from streamgp.inference.conditioning import condition, factorise
from streamgp.inference.learner import Learner

Z = np.linspace(-3, 3, 7)
SLOTS = 9


def learned(factorised):
    generator = np.random.default_rng(0)
    channels = [
        build.channel(build.gaussian(0.3), [[1.0, 0.4]]),
        build.channel(build.gaussian(0.5), [[-0.3, 0.8]]),
    ]
    learner = Learner(learning=None, factorised=factorised)
    state = learner.init(build.model(channels, (1.0, 0.7)), build.inducing(Z, Z + 0.2, slots=SLOTS))
    x = generator.uniform(-3, 1, (30, 1))
    batch = pack([(0, x, np.sin(x[:, 0])), (1, x[:9], np.cos(2 * x[:9, 0]))])
    return build.step(learner, state, batch)[0]


def moments(state):
    """Prior covariance, mean and covariance of q(u), of all real points."""
    chols = np.asarray(factorise(paramax.unwrap(state.model), state.inducing))
    posterior = condition(state.site)
    covariance = np.stack([np.linalg.inv(np.asarray(c) @ np.asarray(c).T) for c in posterior.chol])
    root = dense.block_diagonal(chols)
    covariance = root @ dense.block_diagonal(covariance) @ root.T
    real = np.flatnonzero(np.asarray(state.inducing.mask).ravel())
    mean = root @ np.asarray(posterior.mean).ravel()
    grid = np.ix_(real, real)
    return (root @ root.T)[grid], mean[real], covariance[grid]


def dense_cost(k, m, s, i):
    """KL[q(u) ‖ q(u_rest) p(u_i | u_rest)]."""
    rest = [j for j in range(len(m)) if j != i]
    a = np.linalg.solve(k[np.ix_(rest, rest)], k[rest, i])
    mean, covariance = m.copy(), s.copy()
    mean[i] = a @ m[rest]
    covariance[i, rest] = covariance[rest, i] = a @ s[np.ix_(rest, rest)]
    covariance[i, i] = k[i, i] - a @ k[rest, i] + a @ s[np.ix_(rest, rest)] @ a
    return dense.kl(m, s, mean, covariance)


@pytest.mark.parametrize("factorised", [False, True])
def test_costs_are_divergences(factorised):
    state = learned(factorised)
    got = np.asarray(pruning.costs(paramax.unwrap(state.model), state.inducing, state.site))
    wanted = [dense_cost(*moments(state), i) for i in range(2 * len(Z))]
    np.testing.assert_allclose(got[:, : len(Z)].ravel(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("factorised", [False, True])
def test_the_cheapest_goes_first_and_the_others_are_judged_again(factorised):
    state = learned(factorised)
    k, m, s = moments(state)
    left = list(range(2 * len(Z)))
    budget = 4
    while len(left) > 2 * budget:
        over = [sum(i // len(Z) == q for i in left) > budget for q in range(2)]
        grid = np.ix_(left, left)
        costs = [
            dense_cost(k[grid], m[left], s[grid], i) if over[left[i] // len(Z)] else np.inf
            for i in range(len(left))
        ]
        left.pop(int(np.argmin(costs)))
    kept = eqx.filter_jit(pruning.prune)(
        paramax.unwrap(state.model), state.inducing, state.site, budget
    )
    chosen = np.flatnonzero(np.asarray(kept)[:, : len(Z)].ravel())
    np.testing.assert_array_equal(chosen, left)
    assert not np.asarray(kept)[:, len(Z) :].any()
