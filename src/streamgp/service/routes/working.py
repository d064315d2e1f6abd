"""How routes wait: for a model's lane, or for a prediction, without holding up other requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from streamgp.errors import problem
from streamgp.service.problems import RefusedError

T = TypeVar("T")


async def finished(work: Future) -> Any:
    """The result of work in a lane. A client that goes away does not stop it."""
    try:
        return await asyncio.shield(asyncio.wrap_future(work))
    except asyncio.CancelledError:
        if work.cancelled():
            raise RefusedError(
                503,
                problem("a service that runs", "one that stops", "Send it again, with its key."),
                {"Retry-After": "5"},
            ) from None
        raise


async def in_time(seconds: float, work: Callable[..., T], *given: Any) -> T:
    """The result of reading something, in a thread, or a refusal if that takes too long."""
    try:
        return await asyncio.wait_for(run_in_threadpool(work, *given), seconds)
    except TimeoutError as error:
        raise RefusedError(
            503,
            problem(f"an answer within {seconds:g} s", "none yet", "Ask for fewer inputs."),
            {"Retry-After": "5"},
        ) from error


def content_type(request: Request) -> str:
    """The content type of a request.

    It has to be there: a page of another site can post without one to a service on this machine,
    and a browser does not ask the service first.
    """
    return request.headers.get("content-type", "none")
