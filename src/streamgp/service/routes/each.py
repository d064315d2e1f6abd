"""What can be asked of each model, be it a model of its own or one of a fleet."""

from collections.abc import Awaitable, Callable
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends

from streamgp.service.routes import moving, observing, telling


class Place(NamedTuple):
    """Where a model is in the store, and in which fleet, if in one."""

    key: str
    fleet: str | None = None


def routes(router: APIRouter, prefix: str, place: Callable[..., Awaitable[Place]]) -> None:
    """Add the routes of a model to a router.

    Args:
        router: The router.
        prefix: The path of a model.
        place: A dependency that tells which model a request means.
    """
    place_of = Annotated[Place, Depends(place)]
    for add in (
        observing.add_observations,
        telling.add_predictions,
        telling.add_descriptions,
        moving.add_files,
        moving.add_events,
    ):
        add(router, prefix, place_of)
