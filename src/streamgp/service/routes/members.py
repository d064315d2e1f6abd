"""Models and members of fleets: the same routes for both, each under its own path."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from streamgp.service import names
from streamgp.service.access import Admin, Reader, TheEngine
from streamgp.service.descriptions import described
from streamgp.service.problems import described as problems
from streamgp.service.routes.each import Place, routes
from streamgp.service.routes.models import Count, First, Named, glances
from streamgp.service.routes.working import finished
from streamgp.service.shapes import Description, Models, Specification
from streamgp.service.wire import answer

models = APIRouter(tags=["models"])
fleets = APIRouter(prefix="/v1/fleets", tags=["fleets"])
Key = Annotated[str, Path(pattern=names.PATTERN, max_length=100)]


async def _model(name: Named) -> Place:
    return Place(names.model_key(name))


async def _member(name: Named, key: Key) -> Place:
    return Place(names.member_key(name, key), names.fleet_key(name))


@models.get(
    "/v1/events", dependencies=[Reader], response_class=StreamingResponse,
    responses={**problems(429, 503), 200: {"content": {"text/event-stream": {}}}},
)  # fmt: skip
async def all_events(engine: TheEngine) -> StreamingResponse:
    """Every change of every model, as server-sent events."""
    engine.hub.check_room()
    return StreamingResponse(engine.hub.listen(names.models()), media_type="text/event-stream")


routes(models, "/v1/models/{name}", _model)


@fleets.post(
    "", status_code=201, dependencies=[Admin], responses=problems(409, 413, 429, 503),
    response_model=Description,
)  # fmt: skip
async def create(asked: Specification, engine: TheEngine) -> Any:
    """Make a fleet: models by key that share a specification. Each begins with its first batch."""
    key = names.fleet_key(asked.name)
    live = await finished(await run_in_threadpool(engine.create, key, asked.tables()))
    return answer(described(asked.name, live, 0), 201, {"Location": f"/v1/fleets/{asked.name}"})


@fleets.get("", dependencies=[Reader], responses=problems(503), response_model=Models)
async def listed(engine: TheEngine, first: First = 0, count: Count = 100) -> Any:
    """List fleets, in the order of their names."""
    return answer(await run_in_threadpool(glances, engine, names.fleets(), first, count))


@fleets.get("/{name}", dependencies=[Reader], responses=problems(404, 503), response_model=Models)
async def keys(name: Named, engine: TheEngine, first: First = 0, count: Count = 100) -> Any:
    """List the models of a fleet, in the order of their keys."""
    await run_in_threadpool(engine.read, names.fleet_key(name))
    found = await run_in_threadpool(glances, engine, names.members_of(name), first, count)
    return answer(found)


@fleets.delete(
    "/{name}", status_code=204, dependencies=[Admin], responses=problems(404, 409, 429, 503)
)
async def delete(
    name: Named, engine: TheEngine, members: Annotated[bool, Query()] = False
) -> Response:
    """Delete a fleet. One that has models is only deleted if `members` says so."""
    await run_in_threadpool(engine.delete_fleet, name, members=members)
    return Response(status_code=204)


@fleets.delete(
    "/{name}/{key}", status_code=204, dependencies=[Admin], responses=problems(404, 429, 503)
)
async def delete_member(name: Named, key: Key, engine: TheEngine) -> Response:
    """Delete one model of a fleet."""
    await finished(engine.delete(names.member_key(name, key)))
    return Response(status_code=204)


routes(fleets, "/{name}/{key}", _member)
