"""Observations come in."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool

from streamgp.service import arrow, tables
from streamgp.service.access import TheEngine, Writer
from streamgp.service.bodies import content_type, read_body
from streamgp.service.engine import Batch, Engine, digest_of
from streamgp.service.problems import described as problems
from streamgp.service.routes.working import finished
from streamgp.service.shapes import (
    Learned,
)
from streamgp.service.wire import JSON, answer

IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
]
_ROW = {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean", "null"]}}
_ROWS = {
    JSON: {"schema": {"type": "array", "items": _ROW}},
    tables.NDJSON: {"schema": {"type": "string"}},
    tables.CSV: {"schema": {"type": "string"}},
    arrow.STREAM: {"schema": {"type": "string", "format": "binary"}},
}


BODY = {"requestBody": {"required": True, "content": _ROWS}}


async def batch_of(request: Request, engine: Engine, key: str | None) -> Batch:
    """The observations of a request."""
    body, kind = await read_body(request, engine.settings.limits), content_type(request)

    def read() -> Batch:
        frame = tables.read_table(kind, body, engine.settings.limits.rows)
        return Batch(frame, digest_of(body, kind), key)

    return await run_in_threadpool(read)


def add_observations(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the route that learns."""

    @router.post(
        f"{prefix}/observations", dependencies=[Writer], response_model=Learned,
        responses=problems(404, 409, 413, 415, 429, 503),
        openapi_extra=BODY,
    )  # fmt: skip
    async def observe(
        request: Request, at: place_of, engine: TheEngine, idempotency_key: IdempotencyKey = None
    ) -> Any:
        """Learn a batch of observations. It is on disk when this is answered.

        A request that is sent again with the same `Idempotency-Key` gets the first answer again
        and changes nothing.
        """
        batch = await batch_of(request, engine, idempotency_key)
        report, repeated = await finished(engine.learn(at.key, batch, at.fleet))
        return answer({**report, "repeated": repeated})
