"""Sunspots, month by month, on the chain and on the dense engine."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import streamgp as sgp
from streamgp_lab.experiments import solar
from streamgp_lab.experiments.experiment import Options
from streamgp_lab.races.long.streams import CHAIN, DENSE, timed
from streamgp_lab.reporting.claims import Claim, no_worse
from streamgp_lab.reporting.report import Part
from streamgp_lab.reporting.tables import Table, number

_ROUGH, _SUM = "Matérn-3/2", "Matérn-3/2 + Matérn-5/2"


@dataclass(frozen=True)
class Months:
    """What one model made of the months.

    Attributes:
        kernel: Its name.
        engine: "chain" or "dense".
        nlpd: Prequential, of the months that came one by one.
        points: The number of inducing times or points at the end.
        sample: CPU seconds per month, with hyperparameters learned on schedule.
    """

    kernel: str
    engine: str
    nlpd: float
    points: int
    sample: float


def measure(share: float) -> list[Months]:
    """Both kernels on both engines, with the settings that a model has by itself."""
    problem = solar.problem(Options(share=share))
    (first, later) = (batch["y"] for batch in problem.train)
    found = []
    for name, kernel in _kernels().items():
        for engine in (CHAIN, DENSE):
            model = sgp.ContinualGP(sgp.Gaussian(), latents=kernel, engine=engine)
            model.update(*first)
            took, report = timed(lambda model=model: model.update_many(*later))
            nlpd = -float(np.mean(report.log_predictive_rows["y"]))
            points = len(model.inducing_points[0])
            found.append(Months(name, engine, nlpd, points, took / len(later[0])))
    return found


def _kernels() -> dict[str, sgp.Kernel]:
    return {_ROUGH: sgp.Matern32(), _SUM: sgp.Matern32() + sgp.Matern52()}


def parts(found: Sequence[Months]) -> list[Part]:
    """The table of both kernels and engines, and what is claimed of it."""
    heading = ["kernel", "engine", "prequential NLPD", "M", "CPU ms per month"]
    rows = [
        [m.kernel, m.engine, f"{m.nlpd:.4f}", f"{m.points:,}", number(1e3 * m.sample)]
        for m in found
    ]
    by_way = {(m.kernel, m.engine): m.nlpd for m in found}
    claims: list[Claim] = [
        no_worse(
            f"{kernel}: NLPD of the chain beside the dense engine's",
            by_way[kernel, CHAIN], by_way[kernel, DENSE], by=0.005,
        )
        for kernel in (_ROUGH, _SUM)
    ]  # fmt: skip
    return [Table("Sunspots, one month at a time", heading, rows), claims]
