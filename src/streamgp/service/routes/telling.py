"""What a model says: predictions, descriptions, numbers of its past."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from streamgp.errors import problem
from streamgp.service import names
from streamgp.service.access import Reader, TheEngine
from streamgp.service.descriptions import described
from streamgp.service.pictures import picture
from streamgp.service.predictions import predicted
from streamgp.service.problems import RefusedError
from streamgp.service.problems import described as problems
from streamgp.service.reports import Bookkeeping
from streamgp.service.routes.working import in_time
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


def add_predictions(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the routes that predict."""

    @router.post(f"{prefix}/predict", **_READING, response_model=Predicted)
    async def predict(asked: PredictRequest, at: place_of, engine: TheEngine) -> Any:
        """Predict at some inputs, or ahead of the latest one."""
        limits = engine.settings.limits

        def work() -> Any:
            with engine.metrics.predicting():
                return predicted(engine.read(at.key), asked, limits)

        found = await in_time(limits.predict_seconds, work)
        return answer({"model": names.shown(at.key), **found})

    @router.get(f"{prefix}/picture", **_READING)
    async def draw(
        at: place_of,
        engine: TheEngine,
        points: Annotated[int, Query(ge=2, le=2000)] = 240,
        last: Annotated[float | None, Query(gt=0, allow_inf_nan=False)] = None,
        level: Annotated[float, Query(gt=0, lt=1)] = 0.95,
        components: Annotated[bool, Query()] = False,
    ) -> Any:
        """What the page draws of a model over one input."""

        def work() -> Any:
            live, rows = engine.read(at.key), engine.cache.recent(at.key)
            return picture(live, rows, points=points, last=last, level=level, components=components)

        return answer(await in_time(engine.settings.limits.predict_seconds, work))


def add_descriptions(router: APIRouter, prefix: str, place_of: Any) -> None:
    """Add the routes that describe."""

    @router.get(prefix, **_READING, response_model=Description)
    async def describe(at: place_of, engine: TheEngine) -> Any:
        """Describe a model."""
        live = await run_in_threadpool(engine.read, at.key)
        return answer(described(names.shown(at.key), live, engine.lanes.waiting(at.key)))

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
        live = await run_in_threadpool(engine.read, at.key)
        found = live.model.hyperparameters
        return answer({"model": names.shown(at.key), "hyperparameters": found})

    @router.get(f"{prefix}/history", **_READING, response_model=HistoryAnswer)
    async def history(at: place_of, engine: TheEngine) -> Any:
        """Scores, coverage, hyperparameters and more of some of the updates."""
        kept = Bookkeeping.of((await run_in_threadpool(engine.read, at.key)).model)
        columns, alarms = kept.history.columns(), kept.alarms
        return answer({"model": names.shown(at.key), "columns": columns, "alarms": alarms})
