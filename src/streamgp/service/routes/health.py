"""Health, readiness and metrics."""

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from streamgp.service.access import Reader, TheEngine
from streamgp.service.problems import described as problems
from streamgp.service.shapes import Health
from streamgp.service.wire import answer
from streamgp.version import __version__

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=Health)
async def health() -> Any:
    """Whether the process answers. It does nothing else, and so is the measure of other routes."""
    return answer({"status": "alive", "version": __version__})


@router.get("/readyz", response_model=Health, responses=problems(503))
async def readiness(engine: TheEngine) -> Any:
    """Whether the store can be read."""
    await run_in_threadpool(engine.store.answer, "readiness")
    return answer({"status": "ready", "version": __version__})


@router.get("/metrics", dependencies=[Reader], responses=problems(503), response_class=Response)
async def metrics(engine: TheEngine) -> Response:
    """Metrics in the format of Prometheus."""
    text = await run_in_threadpool(engine.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
