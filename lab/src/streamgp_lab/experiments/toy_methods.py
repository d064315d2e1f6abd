"""The methods of the three experiments on the paper's single-channel toy."""

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import toys
from streamgp_lab.experiments import methods
from streamgp_lab.experiments.experiment import Entry


def beside(rule: methods.Rule, written: str) -> dict[str, Entry]:
    """Every method but ours. `rule` gives the number of inducing points, `written` is its text."""
    return {
        f"streamgp, M = {written}": methods.ours(
            lambda seed: sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Growing(rule), seed=seed)
        ),
        methods.SPARSE: methods.sparse(sgp.Gaussian(), rule),
        methods.PAPER: methods.paper(_told_the_noise, rule),
        methods.HORIZON: methods.NOT_EQUALLY_SPACED,
        methods.OFFLINE: methods.offline(
            lambda seed: sgp.ContinualGP(
                sgp.Gaussian(), engine="dense", learning=sgp.VEM(evaluations=200), seed=seed
            )
        ),
        methods.EXACT: methods.exact(
            lambda seed: Specification({"y": sgp.Gaussian()}, 1, seed=seed)
        ),
    }


def _told_the_noise(seed: int) -> Specification:
    """Only the kernel is learned, as in the paper."""
    noise = sgp.fixed(toys.NOISE)
    return Specification({"y": sgp.Gaussian(noise)}, [sgp.RBF(lengthscale=0.05)], seed=seed)
