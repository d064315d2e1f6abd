"""Observations come in."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool

from streamgp.service import arrow, tables
from streamgp.service.access import TheEngine, Writer
from streamgp.service.bodies import read_body
from streamgp.service.engine import Batch, Engine, digest_of
from streamgp.service.problems import described as problems
from streamgp.service.routes.working import content_type, finished
from streamgp.service.shapes import (
    Learned,
)
from streamgp.service.wire import answer

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


def add_observations(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the route that learns."""

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
