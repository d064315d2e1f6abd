"""Chains at fixed hyperparameters against dense GPs, and Kalman and RTS from the textbook."""

import numpy as np
import pytest
from tests import chains
from tests._reference import markov

# Rows so far apart that every one has a time of its own.
X = np.cumsum(np.random.default_rng(1).uniform(0.55, 0.9, 24)) - 2.0
MIDDLE = 0.5 * (X[1:] + X[:-1])
# Long before, just before, at rows, between them, just after, long after.
TEST = np.concatenate([[X[0] - 8, X[0] - 0.01], X[3:6], MIDDLE[::3], [X[-1] + 0.2, X[-1] + 9]])
CLOSE = {"rtol": 1e-8, "atol": 1e-8}


def worlds(count):
    if count == 1:
        return {name: (chains.one(name), (name,)) for name in chains.KERNELS}
    return {name: (chains.two(name), (name, "matern52")) for name in chains.KERNELS}


def assert_same(model, bound, found, channel, x=TEST):
    """The model says at some inputs what a reference found there."""
    mean, variance = chains.moments(model, x, channel)
    np.testing.assert_allclose(mean, found.mean, **CLOSE)
    np.testing.assert_allclose(variance, np.diag(found.covariance), **CLOSE)
    np.testing.assert_allclose(bound, found.evidence, **CLOSE)


# -- the references --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", chains.KERNELS)
def test_filter_and_smoother_of_the_textbook_are_the_dense_gp(name, count):
    world, _ = worlds(count)[name]
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % count
    dense = markov.exact(world, rows, TEST, channel)
    smoothed = markov.smoothed(world, rows, TEST, channel)
    np.testing.assert_allclose(smoothed.mean, dense.mean, **CLOSE)
    np.testing.assert_allclose(np.diag(smoothed.covariance), np.diag(dense.covariance), **CLOSE)
    np.testing.assert_allclose(smoothed.evidence, dense.evidence, **CLOSE)


# -- exact -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", chains.KERNELS)
def test_a_chain_is_the_dense_gp_and_the_smoother(name, count):
    world, names = worlds(count)[name]
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % count
    model = chains.model_of(world, *names)
    bound = chains.fed(model, rows)
    assert model.engine == "chain"
    assert_same(model, bound, markov.exact(world, rows, TEST, channel), channel)
    assert_same(model, bound, markov.smoothed(world, rows, TEST, channel), channel)
    np.testing.assert_allclose(model.open_variance, 0.0, atol=1e-10)


@pytest.mark.parametrize("names", [("linear", "linear sum"), ("periodic", "linear")])
def test_several_functions_that_never_forget_are_exact(names):
    """Straight lines are zero at the origin, where nothing gives them a scale."""
    world = chains.two(*names)
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % 2
    model = chains.model_of(world, *names)
    bound = chains.fed(model, *shuffled(rows, 8))
    assert_same(model, bound, markov.exact(world, rows, TEST, channel), channel)


def test_a_periodic_chain_is_nearly_the_uncut_periodic_gp():
    world, names = worlds(1)["periodic"]
    rows, channel = chains.draw(world, X), np.zeros(len(TEST), int)

    def uncut(a, b):
        return 1.2 * np.exp(-2 * np.sin(np.pi * (a[:, None] - b) / 3.0) ** 2)

    model = chains.model_of(world, *names)
    chains.fed(model, rows)
    whole = world._replace(processes=(markov.Process((), uncut),))
    found = markov.exact(whole, rows, TEST, channel)
    mean, variance = chains.moments(model, TEST, channel)
    np.testing.assert_allclose(mean, found.mean, atol=1e-5)
    np.testing.assert_allclose(variance, np.diag(found.covariance), atol=1e-5)


def test_rows_are_scored_by_what_was_known_before_them():
    world = chains.two("matern32")
    rows = chains.draw(world, X)
    first, second = rows.take(slice(None, 12)), rows.take(slice(12, None))
    model = chains.model_of(world, "matern32", "matern52")
    chains.fed(model, first)
    report = model.update(chains.batch_of(second))
    known = markov.exact(world, first, second.x, second.channel)
    total = np.diag(known.covariance) + world.noises[second.channel] ** 2
    wanted = -0.5 * (np.log(2 * np.pi * total) + (second.y - known.mean) ** 2 / total)
    for d, name in enumerate(model.channels):
        scores = report.log_predictive_rows[name]
        np.testing.assert_allclose(scores, wanted[second.channel == d], **CLOSE)


def test_channels_without_levels_are_exact_too():
    world = chains.two("matern32")._replace(spreads=np.zeros(2))
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % 2
    model = chains.model_of(world, "matern32", "matern52")
    bound = chains.fed(model, rows)
    assert_same(model, bound, markov.exact(world, rows, TEST, channel), channel)


# -- any order -------------------------------------------------------------------------------------


def shuffled(rows, seed, cuts=6):
    """The rows in batches of any size and in any order."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(rows.x))
    where = np.sort(generator.choice(np.arange(1, len(order)), cuts, replace=False))
    return [rows.take(part) for part in np.split(order, where)]


ARRIVALS = {
    "chunks in order": lambda rows: [rows.take(slice(k, k + 5)) for k in range(0, 24, 5)],
    "single rows": lambda rows: [rows.take([k]) for k in range(24)],
    "single rows, backwards": lambda rows: [rows.take([k]) for k in range(23, -1, -1)],
    "shuffled": lambda rows: shuffled(rows, 0),
    "shuffled again": lambda rows: shuffled(rows, 1),
    "late rows": lambda rows: [rows.take(slice(8, None)), rows.take(slice(8))],
    "rows that fill gaps": lambda rows: [rows.take(slice(k, None, 3)) for k in (1, 0, 2)],
    "a gap that is filled": lambda rows: [
        rows.take(np.r_[0:6, 18:24]), rows.take(slice(6, 18))
    ],
}  # fmt: skip


MIXED = ["matern12", "matern32", "sum", "linear sum", "quasi-periodic", "rough carma", "smooth"]


@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize("name", MIXED)
def test_any_chunking_and_order_gives_the_same_posterior(name, arrival):
    world, names = worlds(2)[name]
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % 2
    model = chains.model_of(world, *names)
    bound = chains.fed(model, *ARRIVALS[arrival](rows))
    assert_same(model, bound, markov.exact(world, rows, TEST, channel), channel)


@pytest.mark.parametrize("late", [0.03, 4.9])
def test_one_late_row_does_not_keep_a_gap_from_being_filled(late):
    world = chains.one("matern32")
    rows = chains.draw(world, np.concatenate([[0.0, 10.0, late], np.arange(1.0, 10.0)]))
    model = chains.model_of(world, "matern32")
    chains.fed(model, rows.take([0, 1]), rows.take([2]), rows.take(slice(3, None)))
    found = markov.exact(world, rows, rows.x, rows.channel)
    mean, variance = chains.moments(model, rows.x, rows.channel)
    np.testing.assert_allclose(mean, found.mean, atol=1e-3)
    np.testing.assert_allclose(variance, np.diag(found.covariance), atol=1e-3)


def test_predictions_on_the_way_change_nothing():
    """What was computed for a prediction is used again only as far as it still holds."""
    world = chains.two("matern32")
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % 2
    model = chains.model_of(world, "matern32", "matern52")
    seen = []
    for batch in shuffled(rows, 3):
        chains.fed(model, batch)
        seen.append(batch)
        so_far = markov.Rows(*(np.concatenate(part) for part in zip(*seen, strict=True)))
        found = markov.exact(world, so_far, TEST, channel)
        mean, variance = chains.moments(model, TEST, channel)
        np.testing.assert_allclose(mean, found.mean, **CLOSE)
        np.testing.assert_allclose(variance, np.diag(found.covariance), **CLOSE)


def test_old_ground_hears_of_new_data_beyond_the_end_of_its_block():
    """Predictions on the way, while the end of the stream grows away from a full block."""
    world = chains.one("matern32")
    x = 0.3 * np.arange(278)
    rows, ends = chains.draw(world, x), [256, 258, 259, 263, 270, 278]
    model = chains.model_of(world, "matern32")
    test = np.linspace(x[238], x[256], 25) + 0.1
    channel = np.zeros(len(test), int)
    for begin, end in zip([0, *ends], ends, strict=False):
        chains.fed(model, rows.take(slice(begin, end)))
        found = markov.smoothed(world, rows.take(slice(end)), test, channel)
        mean, variance = chains.moments(model, test, channel)
        np.testing.assert_allclose(mean, found.mean, **CLOSE)
        np.testing.assert_allclose(variance, np.diag(found.covariance), **CLOSE)


def test_the_order_of_channels_changes_nothing():
    world = chains.two("sum")
    rows, channel = chains.draw(world, X), np.arange(len(TEST)) % 2
    one = chains.model_of(world, "sum", "matern52")
    other = chains.model_of(world, "sum", "matern52", order=(1, 0))
    assert other.channels == ("b", "a")
    bounds = [chains.fed(model, *shuffled(rows, 2)) for model in (one, other)]
    np.testing.assert_allclose(*bounds, **CLOSE)
    for got, wanted in zip(
        chains.moments(one, TEST, channel), chains.moments(other, TEST, channel), strict=True
    ):
        np.testing.assert_allclose(got, wanted, **CLOSE)


def test_long_streams_are_exact_in_any_order():
    world = chains.one("matern32")
    x = 0.3 * np.arange(700)
    rows = chains.draw(world, x)
    test = np.concatenate([[-3.0], np.linspace(0.1, 209.6, 40), [215.0]])
    channel = np.zeros(len(test), int)
    found = markov.smoothed(world, rows, test, channel)
    for batches in (
        [rows.take(slice(k, k + 80)) for k in range(0, 700, 80)],
        [rows.take(slice(200, None)), rows.take(slice(200))],
        [rows.take(slice(k, None, 2)) for k in (1, 0)],
        shuffled(rows, 4, cuts=9),
    ):
        model = chains.model_of(world, "matern32")
        assert_same(model, chains.fed(model, *batches), found, channel, test)


# -- many rows -------------------------------------------------------------------------------------

CROWD = np.sort(np.random.default_rng(5).uniform(0.0, 4.0, 90))
AMONG = np.concatenate([[-2.0, -0.05], np.linspace(0.03, 3.97, 12), [4.1, 7.0]])


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("order", ["at once", "in order", "shuffled"])
def test_crowded_rows_are_exact_too(name, order):
    world, names = worlds(2)[name]
    rows, channel = chains.draw(world, CROWD), np.arange(len(AMONG)) % 2
    batches = {
        "at once": [rows],
        "in order": [rows.take(slice(k, k + 13)) for k in range(0, len(CROWD), 13)],
        "shuffled": shuffled(rows, 6),
    }[order]
    model = chains.model_of(world, *names)
    bound = chains.fed(model, *batches)
    assert_same(model, bound, markov.exact(world, rows, AMONG, channel), channel, AMONG)
    assert max(model.open_variance) == 0


def test_rows_at_one_time_are_exact():
    """Both channels, several times each, and one of these times is that of a later batch."""
    world, names = worlds(2)["matern32"]
    rows = chains.draw(world, np.repeat(X[:8], 3))
    channel = np.arange(len(TEST)) % 2
    model = chains.model_of(world, *names)
    bound = chains.fed(model, rows.take(slice(0, 13)), rows.take(slice(13, None)))
    assert_same(model, bound, markov.exact(world, rows, TEST, channel), channel)


# -- together --------------------------------------------------------------------------------------

# Out of order, several within one interval, one of them twice, and some beyond both ends.
TOGETHER = np.array([3.3, -1.0, 0.21, 0.23, 0.26, 7.0, 2.0, 0.23, -0.4, 3.9, 5.5])


@pytest.mark.parametrize("name", chains.KERNELS)
def test_joint_predictions_are_those_of_the_dense_gp(name):
    world, names = worlds(2)[name]
    rows = chains.draw(world, X)
    model = chains.model_of(world, *names)
    chains.fed(model, *shuffled(rows, 7))
    x = np.concatenate([TOGETHER, X[[3, 9]]])
    both, channel = np.tile(x, 2), np.repeat([1, 0], len(x))
    found = markov.exact(world, rows, both, channel)
    mean, covariance = model.learner.predict_joint(model.state, x[:, None], [1, 0])
    np.testing.assert_allclose(mean, found.mean, **CLOSE)
    np.testing.assert_allclose(covariance, found.covariance, **CLOSE)


def test_joint_predictions_across_many_rows():
    world = chains.one("matern32")
    rows = chains.draw(world, 0.3 * np.arange(600))
    model = chains.model_of(world, "matern32")
    chains.fed(model, rows)
    x = np.array([-1.0, 0.1, 0.2, 38.3, 38.35, 38.5, 39.0, 76.7, 76.9, 179.9, 181.0])
    found = markov.exact(world, rows, x, np.zeros(len(x), int))
    mean, covariance = model.learner.predict_joint(model.state, x[:, None], [0])
    np.testing.assert_allclose(mean, found.mean, **CLOSE)
    np.testing.assert_allclose(covariance, found.covariance, **CLOSE)


def test_joint_draws_have_the_dense_covariance():
    world = chains.one("matern32")
    rows = chains.draw(world, X)
    model = chains.model_of(world, "matern32")
    chains.fed(model, rows)
    x = np.array([-4.0, -3.9, X[4] + 0.2, X[4] + 0.3, 20.0, 20.4])
    draws = model.predict(x).sample(20_000, joint=True)
    found = markov.exact(world, rows, x, np.zeros(len(x), int))
    wanted = found.covariance + world.noises[0] ** 2 * np.eye(len(x))
    np.testing.assert_allclose(draws.mean(axis=0), found.mean, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), wanted, atol=0.15)
