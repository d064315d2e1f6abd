"""The paper's toy problems, shortened: learned in pieces, remembered whole.

`python -m benchmarks.retention` runs them in full, over ten seeds.
"""

import numpy as np
from benchmarks import toys

import streamgp as sgp


def test_streaming_stays_at_the_level_of_the_exact_gp():
    # The mean of a few seeds: the first batch has some thirty test points.
    above, forgotten = [], []
    for seed in range(4):
        data = toys.streaming(seed, rows=1000)
        model = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Growing(lambda t: 3 * t))
        outcome = toys.stream_through(model, data)
        above.append(outcome.final - toys.exact_nlpd(data))
        forgotten.append(outcome.oldest_now - outcome.oldest_first)
    assert np.mean(above) < 0.02
    assert np.mean(forgotten) < 0.02


def test_asynchronous_channels_reach_the_offline_model():
    channels = toys.asynchronous(seed=0)
    model, offline = toys.two_channels(seed=0), toys.two_channels(seed=0)
    for batch in toys.switching_batches(channels):
        model.update(batch)
    offline.update(toys.all_at_once(channels))
    for name, channel in channels.items():
        assert toys.nlpd(model, channel, name) - toys.nlpd(offline, channel, name) < 0.02
    assert max(map(len, model.inducing_points)) < 40


def test_intervals_cover_what_they_promise():
    data = toys.streaming(seed=2)
    model = sgp.ContinualGP(sgp.Gaussian())
    toys.stream_through(model, data)
    low, high = model.predict(data.x[data.test]).interval(0.95)
    covered = np.mean((data.y[data.test] >= low) & (data.y[data.test] <= high))
    assert 0.93 < covered < 0.97
