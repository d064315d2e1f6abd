"""The Open Inference Protocol, version 2: predictions for clients of KServe, Triton and MLServer.

A model has one input tensor per input column, and per channel the output tensors `channel_mean`,
`channel_std`, `channel_lower` and `channel_upper`, or a probability per class and the label.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool

from streamgp.service import names, tensors
from streamgp.service.access import Reader, TheEngine
from streamgp.service.bodies import read_body
from streamgp.service.problems import described as problems
from streamgp.service.routes.models import Named
from streamgp.service.routes.working import in_time
from streamgp.service.wire import answer
from streamgp.version import __version__

router = APIRouter(prefix="/v2", tags=["open inference protocol"])


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


@router.get("/models/{name}", dependencies=[Reader], responses=problems(404, 503))
async def metadata(name: Named, engine: TheEngine) -> Any:
    """The tensors of a model."""
    live = await run_in_threadpool(engine.read, names.model_key(name))
    return answer(await run_in_threadpool(tensors.metadata, name, live.model))


@router.get("/models/{name}/ready", dependencies=[Reader], responses=problems(404, 503))
async def model_ready(name: Named, engine: TheEngine) -> Any:
    """Whether a model can predict."""
    live = await run_in_threadpool(engine.read, names.model_key(name))
    tensors.check_ready(name, live.model)
    return answer({"name": name, "ready": True})


@router.post(
    "/models/{name}/infer", dependencies=[Reader], responses=problems(404, 413, 415, 429, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)  # fmt: skip
async def infer(
    request: Request,
    name: Named,
    engine: TheEngine,
    inference_header_content_length: Annotated[int | None, Header(ge=0)] = None,
) -> Any:
    """Predict."""
    limits = engine.settings.limits
    body = await read_body(request, limits)

    def work() -> Any:
        asked = tensors.read(body, inference_header_content_length)
        with engine.metrics.predicting():
            return tensors.inferred(name, engine.read(names.model_key(name)).model, asked, limits)

    return answer(await in_time(limits.predict_seconds, work))
