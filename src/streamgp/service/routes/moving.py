"""What leaves and enters as a whole: files of models, and events."""

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from streamgp.service import names
from streamgp.service.access import Admin, Reader, TheEngine
from streamgp.service.bodies import read_body
from streamgp.service.descriptions import described
from streamgp.service.problems import described as problems
from streamgp.service.routes.working import finished
from streamgp.service.shapes import (
    Description,
)
from streamgp.service.wire import answer

FILE = "application/octet-stream"


def add_files(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add export and import."""

    @router.get(
        f"{prefix}/file", dependencies=[Reader], response_class=Response,
        responses={**problems(404, 429, 503), 200: {"content": {FILE: {}}}},
    )  # fmt: skip
    async def export(at: place_of, engine: TheEngine) -> Response:
        """The model's file, for `streamgp.load`."""
        data = await run_in_threadpool(engine.bytes_of, at.key)
        name = names.shown(at.key).replace("/", "-").replace(":", "-")
        headers = {"Content-Disposition": f'attachment; filename="{name}.sgp"'}
        return Response(data, media_type=FILE, headers=headers)

    @router.put(
        f"{prefix}/file", status_code=201, dependencies=[Admin], response_model=Description,
        responses=problems(404, 409, 413, 415, 429, 503),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {FILE: {"schema": {"type": "string", "format": "binary"}}},
            }
        },
    )  # fmt: skip
    async def import_file(request: Request, at: place_of, engine: TheEngine) -> Any:
        """Make a model from a model's file. Nothing in the file is run."""
        body = await read_body(request, engine.settings.limits)
        if at.fleet is not None:
            await run_in_threadpool(engine.read, names.fleet_key(at.fleet))
        live = await finished(await run_in_threadpool(engine.import_file, at.key, body))
        return answer(described(names.shown(at.key), live, 0), 201)


def add_events(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the stream of events."""

    @router.get(
        f"{prefix}/events", dependencies=[Reader], response_class=StreamingResponse,
        responses={**problems(404, 429, 503), 200: {"content": {"text/event-stream": {}}}},
    )  # fmt: skip
    async def events(at: place_of, engine: TheEngine) -> StreamingResponse:
        """Every change of a model, as server-sent events."""
        await run_in_threadpool(engine.read, at.key)
        told = await engine.hub.listen(at.key)
        return StreamingResponse(told, media_type="text/event-stream")
