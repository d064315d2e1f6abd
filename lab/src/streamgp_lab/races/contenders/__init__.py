"""One file per contender. `races.worker` runs each of them, in the environment of its library.

A file has a class `Contender` with keyword settings and two methods: `learn(x, y, channel)`, and
`predict(x, channel)`, which returns mean and variance of the observations (for classes, the
probability of class 1). A third method is optional: `stream(x, y, channel)` learns samples one at a
time and returns the log predictive density of each before learning it.
"""
