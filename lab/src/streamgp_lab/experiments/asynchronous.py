"""Asynchronous: the two channels of `synchronous`, one at a time (the paper's Figure 9)."""

from streamgp_lab.experiments import pictures, synchronous
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.problem import Problem


def problem(options: Options) -> Problem:
    """Two batches per stretch, one for each channel. The channels take turns in coming first."""
    train, test = [], []
    for t, (learned, held_out) in enumerate(synchronous.stretches(options)):
        names = list(learned) if t % 2 == 0 else list(learned)[::-1]
        train += [{name: learned[name]} for name in names]
        test += [{name: held_out[name]} for name in names]
    return Problem(train, test)


EXPERIMENT = Experiment(
    name="asynchronous",
    about="The two channels of the synchronous experiment, with only one of them in each batch.",
    problem=problem,
    methods=synchronous.methods_of(lambda t: 4 * ((t + 1) // 2)),
    pictures={"What the model knew": pictures.steps(3, 5, 7, 9)},
)
