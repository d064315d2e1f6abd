"""All experiments by name: those of the paper in its order, then our own."""

from streamgp_lab.experiments import (
    asynchronous,
    banana,
    currency,
    flights,
    heterogeneous,
    horizon,
    incremental,
    level,
    mocap,
    outages,
    overlapping,
    silent,
    solar,
    ssgp,
    streaming,
    synchronous,
)
from streamgp_lab.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        streaming,
        overlapping,
        incremental,
        currency,
        banana,
        synchronous,
        asynchronous,
        mocap,
        solar,
        horizon,
        ssgp,
        heterogeneous,
        flights,
        silent,
        outages,
        level,
    )
}
