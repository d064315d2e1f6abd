"""From the settings of an estimator to a model."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from streamgp.adapters import tables
from streamgp.errors import ConfigurationError, problem
from streamgp.gp import ContinualGP
from streamgp.inducing import Adaptive
from streamgp.inference.vem import VEM
from streamgp.kernels import RBF, Kernel
from streamgp.likelihoods import Likelihood
from streamgp.model import means
from streamgp.model.specification import Latents, default_latents
from streamgp.online.forgetting import Forgetting

Learning = VEM | Literal["vem"] | None
Means = means.Means | Literal["level"]


def build(
    channels: Mapping[str, Likelihood],
    *,
    kernel: Kernel | None,
    latents: Latents | None,
    inducing: Any,
    tolerance: float | None,
    budget: int | None,
    learning: Learning,
    forgetting: float | Forgetting,
    seed: int,
    mean: Means = "level",
    seasons: Any = (),
) -> ContinualGP:
    """Make a model from the settings of an estimator.

    Args:
        channels: The likelihood of each channel, by name.
        kernel: The kernel of every latent function; None for the default.
        latents: The number of latent functions, or their kernels; None for the default number.
        inducing: A placement strategy; None if rows are to be kept.
        tolerance: Instead of `inducing`, the tolerance of `Adaptive`; None if nobody asked for one.
        budget: The same for its budget.
        learning: "vem", a `VEM`, or None.
        forgetting: As for `ContinualGP`.
        seed: As for `ContinualGP`.
        mean: "level" for a level that is learned, or as for `ContinualGP`.
        seasons: As for `ContinualGP`.

    Returns:
        A model without data.

    Raises:
        ConfigurationError: If two settings say the same thing, or one is not valid.
    """
    return ContinualGP(
        channels,
        latents=_latents(channels, kernel, latents),
        inducing=_strategy(inducing, tolerance, budget),
        learning=_rule(learning),
        forgetting=forgetting,
        mean=_mean(mean),
        seasons=seasons,
        seed=seed,
    )


class Settings(Protocol):
    """The settings that estimators of tables have in common, as their users gave them."""

    kernel: Kernel | None
    likelihood: tables.Likelihoods
    mean: Means
    latents: Latents | None
    inducing: Any
    tolerance: float | None
    budget: int | None
    learning: Learning
    forgetting: float | Forgetting
    seed: int


def build_for(
    estimator: Settings,
    names: Sequence[str],
    *,
    default_kernel: Kernel,
    seasons: Any = (),
) -> ContinualGP:
    """Make the model of an estimator of tables.

    Args:
        estimator: With its settings.
        names: The channels, one per column.
        default_kernel: The kernel if the user has given none, neither as such nor in `latents`.
        seasons: As for `ContinualGP`.

    Returns:
        A model without data.

    Raises:
        ConfigurationError: If two settings say the same thing, or one is not valid.
    """
    is_count = estimator.latents is None or isinstance(estimator.latents, int | np.integer)
    return build(
        tables.channels_of(names, estimator.likelihood),
        kernel=default_kernel if estimator.kernel is None and is_count else estimator.kernel,
        latents=estimator.latents,
        inducing=estimator.inducing,
        tolerance=estimator.tolerance,
        budget=estimator.budget,
        learning=estimator.learning,
        forgetting=estimator.forgetting,
        seed=estimator.seed,
        mean=estimator.mean,
        seasons=seasons,
    )


def _strategy(inducing: Any, tolerance: float | None, budget: int | None) -> Any:
    """What was asked for: a strategy, by itself or by its numbers, or none."""
    numbers = {"tolerance": tolerance, "budget": budget}
    given: dict[str, Any] = {name: number for name, number in numbers.items() if number is not None}
    if inducing is not None and given:
        raise ConfigurationError(
            problem(
                "either `inducing`, or `budget` and `tolerance`",
                "both",
                "Give the budget and the tolerance to the strategy: `inducing=Adaptive(…)`.",
            )
        )
    return Adaptive(**given) if given else inducing


def _latents(
    channels: Mapping[str, Likelihood], kernel: Kernel | None, latents: Latents | None
) -> Latents:
    """One kernel for a number of latent functions, or the kernels that were given."""
    if latents is None or isinstance(latents, int | np.integer):
        count = default_latents(channels) if latents is None else int(latents)
        return [RBF() if kernel is None else kernel] * count
    if kernel is not None:
        raise ConfigurationError(
            problem(
                "kernels either in `kernel` or in `latents`",
                "both",
                "With `kernel`, let `latents` be the number of latent functions.",
            )
        )
    return latents


def _mean(mean: Means) -> means.Means:
    if not isinstance(mean, str):
        return mean
    if mean != "level":
        raise ConfigurationError(
            problem(
                "mean 'level', a mean function, a dictionary of them, or None",
                repr(mean),
                "Choose one of them.",
            )
        )
    return means.Constant()


def _rule(learning: Learning) -> VEM | None:
    if learning is None or isinstance(learning, VEM):
        return learning
    if learning != "vem":
        raise ConfigurationError(
            problem("learning 'vem', a `VEM`, or None", repr(learning), "Choose one of them.")
        )
    return VEM()
