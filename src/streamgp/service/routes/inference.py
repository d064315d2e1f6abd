"""The Open Inference Protocol, version 2: predictions for clients of KServe, Triton and MLServer.

A model has one input tensor per input column, and per channel the output tensors `channel_mean`,
`channel_std`, `channel_lower` and `channel_upper`, or a probability per class and the label. Its
version is the number of its updates; only the latest one is served.
"""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from starlette.concurrency import run_in_threadpool

import streamgp as sgp
from streamgp.service import names, tensors
from streamgp.service.access import Reader, TheEngine
from streamgp.service.bodies import check_type, content_type, read_body
from streamgp.service.engine import Engine
from streamgp.service.problems import described_in_protocol as problems
from streamgp.service.readers import Rest
from streamgp.service.routes.models import Named
from streamgp.service.wire import JSON, answer
from streamgp.version import __version__

router = APIRouter(prefix="/v2", tags=["open inference protocol"])
_BINARY = "application/octet-stream"  # a JSON document with binary data after it


class Meant(NamedTuple):
    """The model that a request means, and its version if the request names one."""

    name: str
    version: str | None = None

    def read(self, engine: Engine) -> sgp.ContinualGP:
        """The model, if it has that version."""
        model = engine.read(names.model_key(self.name)).model
        tensors.check_version(self.name, model, self.version)
        return model


async def _latest(name: Named) -> Meant:
    return Meant(name)


async def _versioned(name: Named, version: Annotated[str, Path(max_length=100)]) -> Meant:
    return Meant(name, version)


@router.get("", responses=problems())
async def server() -> Any:
    """What this server is."""
    return answer({"name": "streamgp", "version": __version__, "extensions": []})


@router.get("/health/live")
async def live() -> Any:
    """Whether the process answers."""
    return answer({"live": True})


@router.get("/health/ready", responses=problems(503))
async def ready(engine: TheEngine) -> Any:
    """Whether the store can be read."""
    await run_in_threadpool(engine.store.answer, "readiness")
    return answer({"ready": True})


def _add(prefix: str, meant: Any) -> None:
    """Add the routes of a model, or of one of its versions."""
    meant_by = Annotated[Meant, Depends(meant)]

    @router.get(prefix, dependencies=[Reader], responses=problems(404, 503))
    async def metadata(at: meant_by, engine: TheEngine) -> Any:
        """The tensors of a model."""

        def work() -> Response:
            return answer(tensors.metadata(at.name, at.read(engine)))

        return await run_in_threadpool(work)

    @router.get(f"{prefix}/ready", dependencies=[Reader], responses=problems(404, 503))
    async def model_ready(at: meant_by, engine: TheEngine) -> Any:
        """Whether a model can predict."""
        tensors.check_ready(at.name, await run_in_threadpool(at.read, engine))
        return answer({"name": at.name, "ready": True})

    @router.post(
        f"{prefix}/infer", dependencies=[Reader], responses=problems(404, 413, 415, 503),
        openapi_extra={
            "requestBody": {"required": True, "content": {JSON: {"schema": tensors.SCHEMA}}}
        },
    )  # fmt: skip
    async def infer(
        request: Request,
        at: meant_by,
        engine: TheEngine,
        inference_header_content_length: Annotated[int | None, Header(ge=0)] = None,
    ) -> Any:
        """Predict."""
        # Triton's client names no content type. A page of another site that names none learns
        # nothing by this: it cannot read the answer, and nothing changes.
        binary = () if inference_header_content_length is None else (_BINARY,)
        if "content-type" in request.headers:
            check_type(content_type(request), (JSON, *binary))
        limits = engine.settings.limits
        body = await read_body(request, limits)

        def work() -> bytes | Rest:
            asked = tensors.read(body, inference_header_content_length)
            return tensors.inferred(at.name, at.read(engine), asked, limits)

        with engine.metrics.predicting():
            return answer(await engine.readers.done(work))


_add("/models/{name}", _latest)
_add("/models/{name}/versions/{version}", _versioned)
