"""Models: they are made, listed, described and deleted."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from streamgp.service import names
from streamgp.service.access import Admin, Reader, TheEngine
from streamgp.service.bodies import described_body, json_body, shaped
from streamgp.service.descriptions import described
from streamgp.service.engine import Engine
from streamgp.service.problems import described as problems
from streamgp.service.routes.working import finished
from streamgp.service.shapes import Description, Models, Specification
from streamgp.service.wire import answer

router = APIRouter(prefix="/v1/models", tags=["models"])
Named = Annotated[str, Path(pattern=names.PATTERN, max_length=100)]
First = Annotated[int, Query(ge=0, le=10**9)]
Count = Annotated[int, Query(ge=1, le=1000)]


@router.post(
    "", status_code=201, dependencies=[Admin], responses=problems(409, 413, 415, 429, 503),
    response_model=Description, openapi_extra=described_body(Specification),
)  # fmt: skip
async def create(request: Request, engine: TheEngine) -> Any:
    """Make a model."""
    body = await json_body(request, engine.settings.limits)
    asked = await run_in_threadpool(shaped, Specification, body)
    key = names.model_key(asked.name)
    live = await finished(await run_in_threadpool(engine.create, key, asked.tables()))
    where = {"Location": f"/v1/models/{asked.name}"}
    return answer(described(asked.name, live, 0), 201, where)


@router.get("", dependencies=[Reader], responses=problems(503), response_model=Models)
async def listed(engine: TheEngine, first: First = 0, count: Count = 100) -> Any:
    """List models, in the order of their names."""
    return await run_in_threadpool(lambda: answer(glances(engine, names.models(), first, count)))


@router.delete("/{name}", status_code=204, dependencies=[Admin], responses=problems(404, 429, 503))
async def delete(name: Named, engine: TheEngine) -> Response:
    """Delete a model."""
    await finished(engine.delete(names.model_key(name)))
    return Response(status_code=204)


def glances(engine: Engine, prefix: str, first: int, count: int) -> dict[str, Any]:
    """Some models, without loading them."""
    infos = engine.store.infos(prefix)
    shown = [
        {
            "name": info.key.removeprefix(prefix),
            "updates": info.updates,
            "observations": info.observations,
            "changed": info.changed.isoformat(),
            "bytes": info.size,
        }
        for info in infos[first : first + count]
    ]
    return {"models": shown, "total": len(infos)}
