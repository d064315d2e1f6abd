"""How routes wait for a model's lane, without holding up other requests."""

import asyncio
from concurrent.futures import Future
from typing import Any

from streamgp.errors import problem
from streamgp.service.problems import RefusedError


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
