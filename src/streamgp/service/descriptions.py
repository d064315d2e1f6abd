"""Descriptions: what a model is and how far it has come, as JSON."""

from typing import Any

from streamgp.service.cache import Live
from streamgp.service.reports import Bookkeeping, latest
from streamgp.service.wire import plain


def described(name: str, live: Live, waiting: int) -> dict[str, Any]:
    """A model in words and numbers."""
    model, kept = live.model, Bookkeeping.of(live.model)
    return plain(
        {
            "name": name,
            "specification": kept.specification,
            "channels": {n: type(c).__name__ for n, c in model.likelihoods.items()},
            "inputs": dict(zip(model.input_names, map(str, model.axes), strict=True)),
            "engine": model.engine,
            "updates": model._version.progress.updates,
            "observations": model.observations,
            "latest": latest(model),
            "inducing_points": [len(points) for points in model.inducing_points],
            "open_variance": model.open_variance,
            "budget": model._version.updater.engines.budget,
            "seconds_since_last": live.silence,
            "waiting": waiting,
            "alarms": kept.alarms,
        }
    )
