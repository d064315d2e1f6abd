"""What can be asked of each model, be it a model of its own or one of a fleet."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from streamgp.errors import problem
from streamgp.service import arrow, names, tables
from streamgp.service.access import Admin, Reader, TheEngine, Writer
from streamgp.service.bodies import read_body
from streamgp.service.descriptions import described
from streamgp.service.engine import Batch, Engine, digest_of
from streamgp.service.pictures import picture
from streamgp.service.predictions import predicted
from streamgp.service.problems import RefusedError
from streamgp.service.problems import described as problems
from streamgp.service.reports import Bookkeeping
from streamgp.service.routes.working import content_type, finished, in_time
from streamgp.service.shapes import (
    Description,
    HistoryAnswer,
    Hyperparameters,
    Learned,
    Predicted,
    PredictRequest,
)
from streamgp.service.wire import answer

FILE = "application/octet-stream"


class Place(NamedTuple):
    """Where a model is in the store, and what it begins as if it is not there yet."""

    key: str
    beginning: str | None = None


IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
]
_ROW = {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean", "null"]}}
_ROWS = {
    tables.JSON: {"schema": {"type": "array", "items": _ROW}},
    tables.NDJSON: {"schema": {"type": "string"}},
    tables.CSV: {"schema": {"type": "string"}},
    arrow.STREAM: {"schema": {"type": "string", "format": "binary"}},
}


def _batch(engine: Engine, kind: str, body: bytes, request: str | None) -> Batch:
    frame = tables.read_table(kind, body, engine.settings.limits.rows)
    return Batch(frame, digest_of(body, kind), request)


def routes(router: APIRouter, prefix: str, place: Callable[..., Awaitable[Place]]) -> None:
    """Add the routes of a model to a router.

    Args:
        router: The router.
        prefix: The path of a model.
        place: A dependency that tells which model a request means.
    """
    place_of = Annotated[Place, Depends(place)]
    reading: dict[str, Any] = {"dependencies": [Reader], "responses": problems(404, 429, 503)}

    @router.get(prefix, **reading, response_model=Description)
    async def describe(at: place_of, engine: TheEngine) -> Any:
        """Describe a model."""
        live = await run_in_threadpool(engine.read, at.key)
        return answer(described(names.shown(at.key), live, engine.lanes.waiting(at.key)))

    @router.post(
        f"{prefix}/observations", dependencies=[Writer], response_model=Learned,
        responses=problems(404, 409, 413, 415, 429, 503),
        openapi_extra={"requestBody": {"required": True, "content": _ROWS}},
    )  # fmt: skip
    async def observe(
        request: Request, at: place_of, engine: TheEngine, idempotency_key: IdempotencyKey = None
    ) -> Any:
        """Learn a batch of observations. It is on disk when this is answered.

        A request that is sent again with the same `Idempotency-Key` gets the first answer again
        and changes nothing.
        """
        body = await read_body(request, engine.settings.limits)
        batch = await run_in_threadpool(
            _batch, engine, content_type(request), body, idempotency_key
        )
        report, repeated = await finished(engine.learn(at.key, batch, at.beginning))
        return answer({**report, "repeated": repeated})

    @router.post(f"{prefix}/predict", **reading, response_model=Predicted)
    async def predict(asked: PredictRequest, at: place_of, engine: TheEngine) -> Any:
        """Predict at some inputs, or ahead of the latest one."""
        limits = engine.settings.limits

        def work() -> Any:
            with engine.metrics.predicting():
                return predicted(engine.read(at.key), asked, limits)

        found = await in_time(limits.predict_seconds, work)
        return answer({"model": names.shown(at.key), **found})

    @router.get(f"{prefix}/report", **reading, response_model=Learned)
    async def report(at: place_of, engine: TheEngine) -> Any:
        """The report of the last update that this process has made."""
        live = await run_in_threadpool(engine.read, at.key)
        if live.report is None:
            raise RefusedError(
                404,
                problem(
                    "an update since the service started, or the model was loaded",
                    "none",
                    "The history has the numbers of earlier updates.",
                ),
            )
        return answer(live.report)

    @router.get(f"{prefix}/hyperparameters", **reading, response_model=Hyperparameters)
    async def hyperparameters(at: place_of, engine: TheEngine) -> Any:
        """Every hyperparameter, in the units of the data."""
        live = await run_in_threadpool(engine.read, at.key)
        found = live.model.hyperparameters
        return answer({"model": names.shown(at.key), "hyperparameters": found})

    @router.get(f"{prefix}/history", **reading, response_model=HistoryAnswer)
    async def history(at: place_of, engine: TheEngine) -> Any:
        """Scores, coverage, hyperparameters and more of some of the updates."""
        kept = Bookkeeping.of((await run_in_threadpool(engine.read, at.key)).model)
        columns, alarms = kept.history.columns(), kept.alarms
        return answer({"model": names.shown(at.key), "columns": columns, "alarms": alarms})

    @router.get(f"{prefix}/picture", **reading)
    async def draw(
        at: place_of,
        engine: TheEngine,
        points: Annotated[int, Query(ge=2, le=2000)] = 240,
        last: Annotated[float | None, Query(gt=0, allow_inf_nan=False)] = None,
        level: Annotated[float, Query(gt=0, lt=1)] = 0.95,
    ) -> Any:
        """What the page draws of a model over one input."""

        def work() -> Any:
            live, rows = engine.read(at.key), engine.cache.recent(at.key)
            return picture(live, rows, points=points, last=last, level=level)

        return answer(await in_time(engine.settings.limits.predict_seconds, work))

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
        if at.beginning is not None:
            await run_in_threadpool(engine.read, at.beginning)
        live = await finished(await run_in_threadpool(engine.import_file, at.key, body))
        return answer(described(names.shown(at.key), live, 0), 201)

    @router.get(
        f"{prefix}/events", dependencies=[Reader], response_class=StreamingResponse,
        responses={**problems(404, 429, 503), 200: {"content": {"text/event-stream": {}}}},
    )  # fmt: skip
    async def events(at: place_of, engine: TheEngine) -> StreamingResponse:
        """Every change of a model, as server-sent events."""
        await run_in_threadpool(engine.read, at.key)
        engine.hub.check_room()
        return StreamingResponse(engine.hub.listen(at.key), media_type="text/event-stream")
