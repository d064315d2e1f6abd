"""What a fleet refuses."""

from collections.abc import Mapping
from typing import Any

from streamgp.errors import ConfigurationError, problem
from streamgp.gp import ContinualGP
from streamgp.likelihoods import Likelihood


def check_is_of_kind(model: ContinualGP, channels: Mapping[str, Likelihood]) -> None:
    """Refuse a model with other channels than those of the fleet."""
    families = {name: type(own) for name, own in model.likelihoods.items()}
    if families != {name: type(likelihood) for name, likelihood in channels.items()}:
        raise ConfigurationError(
            problem(
                f"a model with channels {list(channels)} of the fleet's families",
                repr(model),
                "All models of a fleet are of one kind.",
            )
        )


def check_not_both(population: bool, shared: bool) -> None:
    """Refuse two ways to learn from all keys at once."""
    if population and shared:
        raise ConfigurationError(
            problem(
                "`population=True` or `shared=True`",
                "both",
                "Shared hyperparameters are those of the population.",
            )
        )


def check_is_blank(model: Any) -> None:
    """Refuse what is no model without data."""
    if not isinstance(model, ContinualGP) or model.state is not None:
        raise ConfigurationError(
            problem(
                "a model without data, which every key begins as",
                repr(model),
                "Call `Fleet(ContinualGP(…))`; models with data are added by `fleet.add(key, …)`.",
            )
        )
