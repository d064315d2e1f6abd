"""One file a contender. Each is run by `bench.worker`, those of peers in environments of their own.

A file has a class `Contender` of keyword settings with two methods: `learn(x, y, channel)` and
`predict(x, channel)`, which gives mean and variance of what will be observed (of a class, its
probability). One that learns samples faster in a row also has `stream(x, y, channel)`, which gives
each sample's log predictive density before it was learned.
"""
