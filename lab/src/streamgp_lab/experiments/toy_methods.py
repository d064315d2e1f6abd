"""What the three experiments on the paper's single-channel toy are run with."""

import streamgp as sgp
from streamgp_lab.baselines.core import Specification
from streamgp_lab.experiments import methods
from streamgp_lab.experiments.problem import Entry
from streamgp_lab.experiments.sources import toys


def beside(rule: methods.Rule, written: str) -> dict[str, Entry]:
    """Every other method; the paper's rule for the number of inducing points, and how it is put."""
    return {
        f"streamgp, M = {written}": methods.ours(
            lambda seed: sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Growing(rule), seed=seed)
        ),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), rule),
        methods.PAPER: methods.paper(_told_the_noise, rule),
        methods.HORIZON: methods.NOT_EQUALLY_SPACED,
        methods.OFFLINE: methods.offline(
            lambda seed: sgp.ContinualGP(
                sgp.Gaussian(), learning=sgp.VEM(evaluations=200), seed=seed
            )
        ),
        methods.EXACT: methods.exact(lambda seed: Specification({"y": sgp.Gaussian()}, 1, seed)),
    }


def _told_the_noise(seed: int) -> Specification:
    """As in the paper, where only the kernel is learned."""
    noise = sgp.fixed(toys.NOISE)
    return Specification({"y": sgp.Gaussian(noise)}, [sgp.RBF(lengthscale=0.05)], seed)
