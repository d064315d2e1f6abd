"""The application: everything put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from streamgp.service import problems
from streamgp.service.bodies import Bounded
from streamgp.service.engine import Engine
from streamgp.service.feeding import Feeding, Source
from streamgp.service.guard import Guard
from streamgp.service.routes import health, inference, members, models, page
from streamgp.service.settings import Settings
from streamgp.service.shapes import (
    FleetSpecification,
    InferenceError,
    PredictRequest,
    ProblemDocument,
    Specification,
)
from streamgp.sources import urls
from streamgp.version import __version__

# What routes read and write without the framework, which would describe it.
_SHAPES = (ProblemDocument, InferenceError, Specification, FleetSpecification, PredictRequest)


def create_app(settings: Settings) -> FastAPI:
    """Make the application of a service, for uvicorn or another ASGI server with one process.

    Args:
        settings: Where its store is, who may use it, and how much.

    Returns:
        The application. It closes its store when it is shut down.

    Raises:
        FileError: If the store cannot be used.
        ConfigurationError: If a source is none.
        ImportError: If a source needs a package that is missing.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     app = create_app(Settings(f"{folder}/models.db", open=True))
        ...     app.state.engine.close()
        >>> "/v1/models/{name}/predict" in app.openapi()["paths"]
        True
    """
    sources = [Source(url, settings.source_settings) for url in settings.sources]
    for url in settings.sources:
        urls.check_installed(url)
    engine = Engine(settings)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        feedings = [Feeding(engine, source) for source in sources]
        for feeding in feedings:
            feeding.start()
        yield
        for feeding in feedings:
            feeding.stop()
        engine.close()

    app = FastAPI(
        title="streamgp",
        version=__version__,
        description="Continual multi-task Gaussian processes: post observations, read predictions.",
        lifespan=life,
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.engine = engine
    problems.install(app)
    for router in (
        health.router, models.router, members.models, members.fleets, inference.router, page.router,
    ):  # fmt: skip
        app.include_router(router)
    app.add_middleware(Bounded, limits=settings.limits)
    app.add_middleware(Guard, counted=engine.metrics.requested)
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Add the shapes that routes read and write by themselves to the description."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            shapes = schema.setdefault("components", {}).setdefault("schemas", {})
            for shape in _SHAPES:
                shapes[shape.__name__] = shape.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                shapes.pop(name, None)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
