"""What a model says: predictions, descriptions, numbers of its past."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from streamgp.errors import problem
from streamgp.service import names
from streamgp.service.access import Reader, TheEngine
from streamgp.service.bodies import described_body, json_body, shaped
from streamgp.service.descriptions import described
from streamgp.service.pictures import picture
from streamgp.service.predictions import predicted
from streamgp.service.problems import RefusedError
from streamgp.service.problems import described as problems
from streamgp.service.readers import Rest
from streamgp.service.reports import Bookkeeping
from streamgp.service.shapes import (
    Description,
    HistoryAnswer,
    Hyperparameters,
    Learned,
    Predicted,
    PredictRequest,
)
from streamgp.service.wire import answer

_READING: dict[str, Any] = {"dependencies": [Reader], "responses": problems(404, 429, 503)}
_PREDICTING = {**_READING, "responses": problems(404, 413, 415, 429, 503)}


def add_predictions(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the routes that predict."""

    @router.post(
        f"{prefix}/predict", **_PREDICTING, response_model=Predicted,
        openapi_extra=described_body(PredictRequest),
    )  # fmt: skip
    async def predict(request: Request, at: place_of, engine: TheEngine) -> Any:
        """Predict at some inputs, or ahead of the latest one."""
        limits = engine.settings.limits
        body = await json_body(request, limits)

        def work() -> bytes | Rest:
            asked = shaped(PredictRequest, body)
            return predicted(names.shown(at.key), engine.read(at.key), asked, limits)

        with engine.metrics.predicting():
            return answer(await engine.readers.done(work))

    @router.get(f"{prefix}/picture", **_PREDICTING)
    async def draw(
        at: place_of,
        engine: TheEngine,
        points: Annotated[int, Query(ge=2, le=2000)] = 240,
        last: Annotated[float | None, Query(gt=0, allow_inf_nan=False)] = None,
        level: Annotated[float, Query(gt=0, lt=1)] = 0.95,
        components: Annotated[bool, Query()] = False,
    ) -> Any:
        """What the page draws of a model over one input."""

        def work() -> bytes:
            live, rows, limits = (
                engine.read(at.key),
                engine.cache.recent(at.key),
                engine.settings.limits,
            )
            return picture(
                live,
                rows,
                points=points,
                last=last,
                level=level,
                limits=limits,
                components=components,
            )

        return answer(await engine.readers.done(work))


def add_descriptions(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the routes that describe."""

    @router.get(prefix, **_READING, response_model=Description)
    async def describe(at: place_of, engine: TheEngine) -> Any:
        """Describe a model."""

        def work() -> Response:
            live, waiting = engine.read(at.key), engine.lanes.waiting(at.key)
            return answer(described(names.shown(at.key), live, waiting))

        return await run_in_threadpool(work)

    @router.get(f"{prefix}/report", **_READING, response_model=Learned)
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

    @router.get(f"{prefix}/hyperparameters", **_READING, response_model=Hyperparameters)
    async def hyperparameters(at: place_of, engine: TheEngine) -> Any:
        """Every hyperparameter, in the units of the data."""

        def work() -> Response:
            found = engine.read(at.key).model.hyperparameters
            return answer({"model": names.shown(at.key), "hyperparameters": found})

        return await run_in_threadpool(work)

    @router.get(f"{prefix}/history", **_READING, response_model=HistoryAnswer)
    async def history(at: place_of, engine: TheEngine) -> Any:
        """Scores, coverage, hyperparameters and more of some of the updates."""

        def work() -> Response:
            kept = Bookkeeping.of(engine.read(at.key).model)
            columns, alarms = kept.history.columns(), kept.alarms
            return answer({"model": names.shown(at.key), "columns": columns, "alarms": alarms})

        return await run_in_threadpool(work)
