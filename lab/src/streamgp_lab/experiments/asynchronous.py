"""Asynchronous: the same two channels, one at a time (the paper's Figure 9)."""

from streamgp_lab.experiments import figures, synchronous
from streamgp_lab.experiments.problem import Experiment, Options, Problem


def problem(options: Options) -> Problem:
    """Every stretch comes in two batches, a channel each; the channel that leads takes turns."""
    train, test = [], []
    for t, (learned, held_out) in enumerate(synchronous.stretches(options)):
        names = list(learned) if t % 2 == 0 else list(learned)[::-1]
        train += [{name: learned[name]} for name in names]
        test += [{name: held_out[name]} for name in names]
    return Problem(train, test)


EXPERIMENT = Experiment(
    name="asynchronous",
    about="The two channels of the synchronous experiment, only one of them in each batch.",
    problem=problem,
    methods=synchronous.methods_of(lambda t: 4 * ((t + 1) // 2)),
    figures={"What the model knew": figures.steps(3, 5, 7, 9)},
)
