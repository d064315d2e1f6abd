"""All experiments by name, in the order of the paper."""

from streamgp_lab.experiments import (
    asynchronous,
    banana,
    currency,
    flights,
    heterogeneous,
    horizon,
    incremental,
    mocap,
    overlapping,
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
    )
}
