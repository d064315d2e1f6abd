"""What the adapters share: from the plain settings of an estimator to a model."""

from collections.abc import Mapping
from typing import Literal

from streamgp.errors import ConfigurationError, problem
from streamgp.gp import ContinualGP
from streamgp.inducing import Adaptive
from streamgp.inference.learner import VEM
from streamgp.kernels import RBF, Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model.specification import default_latents
from streamgp.online.forgetting import Forgetting

Learning = VEM | Literal["vem"] | None


def build(
    channels: Mapping[str, Likelihood],
    *,
    kernel: Kernel | None,
    latents: int | None = None,
    tolerance: float,
    budget: int,
    learning: Learning,
    forgetting: float | Forgetting,
    seed: int,
) -> ContinualGP:
    """A model of these channels; `kernel` is that of each of its latent functions."""
    count = default_latents(channels) if latents is None else latents
    return ContinualGP(
        channels,
        latents=[RBF() if kernel is None else kernel] * count,
        inducing=Adaptive(tolerance, budget),
        learning=_rule(learning),
        forgetting=forgetting,
        seed=seed,
    )


def _rule(learning: Learning) -> VEM | None:
    if learning is None or isinstance(learning, VEM):
        return learning
    if learning != "vem":
        raise ConfigurationError(
            problem("learning 'vem', a `VEM`, or None", repr(learning), "Choose one of them.")
        )
    return VEM()
