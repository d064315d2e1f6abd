"""Models and members of fleets: the same routes for both, each under its own path."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from streamgp.service import keyed, names
from streamgp.service.access import Admin, Reader, TheEngine, Writer
from streamgp.service.bodies import described_body, json_body, shaped
from streamgp.service.descriptions import described
from streamgp.service.fleets import Common
from streamgp.service.problems import described as problems
from streamgp.service.routes.each import Place, routes
from streamgp.service.routes.models import Count, First, Named, glances
from streamgp.service.routes.observing import BODY, IdempotencyKey, batch_of
from streamgp.service.routes.working import finished
from streamgp.service.shapes import (
    Description,
    FleetModels,
    FleetSpecification,
    KeysLearned,
    Models,
)
from streamgp.service.wire import answer

models = APIRouter(tags=["models"])
fleets = APIRouter(prefix="/v1/fleets", tags=["fleets"])
Key = Annotated[str, Path(pattern=names.PATTERN, max_length=100)]
Column = Annotated[
    str, Query(min_length=1, max_length=100, description="The column that has the keys.")
]


async def _model(name: Named) -> Place:
    return Place(names.model_key(name))


async def _member(name: Named, key: Key) -> Place:
    return Place(names.member_key(name, key), name)


@models.get(
    "/v1/events", dependencies=[Reader], response_class=StreamingResponse,
    responses={**problems(429, 503), 200: {"content": {"text/event-stream": {}}}},
)  # fmt: skip
async def all_events(engine: TheEngine) -> StreamingResponse:
    """Every change of every model, those of fleets too, as server-sent events."""
    told = await engine.hub.listen(names.models(), names.members())
    return StreamingResponse(told, media_type="text/event-stream")


routes(models, "/v1/models/{name}", _model)


@fleets.post(
    "", status_code=201, dependencies=[Admin], responses=problems(409, 413, 415, 429, 503),
    response_model=Description, openapi_extra=described_body(FleetSpecification),
)  # fmt: skip
async def create(request: Request, engine: TheEngine) -> Any:
    """Make a fleet: models by key that share a specification. Each begins with its first batch."""
    body = await json_body(request, engine.settings.limits)
    asked = await run_in_threadpool(shaped, FleetSpecification, body)
    key = names.fleet_key(asked.name)
    made = partial(engine.create_fleet, key, asked.tables(), is_pooled=asked.population)
    live = await finished(await run_in_threadpool(made))
    return answer(described(asked.name, live, 0), 201, {"Location": f"/v1/fleets/{asked.name}"})


@fleets.get("", dependencies=[Reader], responses=problems(503), response_model=Models)
async def listed(engine: TheEngine, first: First = 0, count: Count = 100) -> Any:
    """List fleets, in the order of their names."""
    return await run_in_threadpool(lambda: answer(glances(engine, names.fleets(), first, count)))


@fleets.get(
    "/{name}", dependencies=[Reader], responses=problems(404, 503), response_model=FleetModels
)
async def keys(name: Named, engine: TheEngine, first: First = 0, count: Count = 100) -> Any:
    """List the models of a fleet, in the order of their keys."""
    blank = await run_in_threadpool(engine.read, names.fleet_key(name))
    found = await run_in_threadpool(glances, engine, names.members_of(name), first, count)
    common = Common.of(blank.model)
    pooled = 0 if common.population is None else common.population.keys
    return answer({**found, "population": common.is_pooled, "pooled_keys": pooled})


@fleets.post(
    "/{name}/observations", dependencies=[Writer], response_model=KeysLearned,
    responses=problems(404, 409, 413, 415, 429, 503), openapi_extra=BODY,
)  # fmt: skip
async def observe(
    request: Request, name: Named, engine: TheEngine, key: Column,
    idempotency_key: IdempotencyKey = None,
) -> Any:  # fmt: skip
    """Learn observations of many keys, which a column of the rows has. All are committed together.

    A key whose rows cannot be learned stays as it was and is among the `errors`; all others are
    learned. A request that is sent again with the same `Idempotency-Key` gets the first answer
    again and changes nothing.
    """
    batch = await batch_of(request, engine, idempotency_key)
    report, repeated = await finished(keyed.learn(engine, name, key, batch))
    return await run_in_threadpool(answer, {**report, "repeated": repeated})


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
