"""The methods that several experiments use, as entries of their tables."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamgp.gp import ContinualGP
from streamgp.kernels import Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.specification import Specification
from streamgp.parameters import unwrap
from streamgp_lab.baselines.exact import Exact
from streamgp_lab.baselines.independent import Independent
from streamgp_lab.baselines.infinite_horizon import InfiniteHorizon
from streamgp_lab.baselines.paper import Paper
from streamgp_lab.baselines.streaming_sparse import StreamingSparse
from streamgp_lab.experiments.experiment import Entry, cannot

Rule = Callable[[int], int]  # the number of inducing points at the t-th update
Make = Callable[[int], ContinualGP]  # from a seed

OURS, OFFLINE, EXACT = "streamgp", "offline model", "exact GP"
SPARSE, PAPER, INDEPENDENT = "streaming sparse GP", "the paper's algorithm", "independent GPs"
HORIZON = "infinite-horizon GP"

NOT_EQUALLY_SPACED = cannot("inputs are not equally spaced")
ONE_CHANNEL_ONLY = cannot("one channel only")
GAUSSIAN_ONLY = cannot("Gaussian noise only")


def ours(make: Make) -> Entry:
    """A continual model that gets one batch after the other."""
    return Entry(lambda _, seed: make(seed))


def offline(make: Make) -> Entry:
    """A continual model that gets all data at once."""
    return Entry(lambda _, seed: make(seed), streaming=False)


def exact(specification: Callable[[int], Specification], evaluations: int = 40) -> Entry:
    """An exact GP of all data."""
    return Entry(
        lambda _, seed: Exact(specification(seed), evaluations=evaluations), streaming=False
    )


def sparse(likelihood: Likelihood, points: Rule, kernel: Kernel | None = None) -> Entry:
    """Streaming sparse GPs (Bui et al., 2017)."""
    return Entry(
        lambda problem, seed: StreamingSparse(
            likelihood, kernel, points=points, name=problem.channels[0], seed=seed
        )
    )


def paper(
    specification: Callable[[int], Specification], points: Rule, *, rounds: int = 4,
    iterations: int = 100,
) -> Entry:  # fmt: skip
    """The algorithm of the paper, with its settings."""
    return Entry(
        lambda _, seed: Paper(
            specification(seed), points=points, rounds=rounds, iterations=iterations
        )
    )


def independent(channels: Mapping[str, Likelihood], **settings: object) -> Entry:
    """One continual model per channel."""

    def start(_: object, seed: int) -> Independent:
        own: dict[str, Any] = {"engine": "dense", "seed": seed, **settings}
        return Independent({name: ContinualGP(c, **own) for name, c in channels.items()})

    return Entry(start)


def steady(fitted: Exact | ContinualGP) -> InfiniteHorizon:
    """An infinite-horizon GP with the hyperparameters of a Matérn-3/2 model of one channel."""
    wrapped = fitted.model if isinstance(fitted, Exact) else fitted.state.model  # type: ignore[union-attr]
    model = unwrap(wrapped)
    (kernel,), (channel,) = model.kernels, model.channels
    return InfiniteHorizon(
        channel.likelihood,
        lengthscale=np.asarray(kernel.lengthscale).item(),
        variance=np.asarray(kernel.variance).item(),
        offset=np.asarray(channel.offset).item(),
    )
