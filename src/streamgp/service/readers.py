"""Readers: threads that predict and write the answer, while the event loop sees to other requests.

There are few of them, because each holds up the event loop for a moment whenever it is let in. Long
predictions have threads of their own, so that a short one never waits for them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from streamgp.errors import problem
from streamgp.service.problems import RefusedError

T = TypeVar("T")

# Work that reads gives an answer, or says what remains to be done for it if that is long.
Rest = Callable[[], bytes]
Work = Callable[[], bytes | Rest]


class Readers:
    """Threads for brief work, and as many for long work.

    Args:
        count: How many of each.
        seconds: How long work may take, with its wait, before its client is told to come back.
    """

    def __init__(self, count: int, seconds: float):
        self._brief = ThreadPoolExecutor(count, thread_name_prefix="streamgp-reader")
        self._long = ThreadPoolExecutor(count, thread_name_prefix="streamgp-long-reader")
        self._seconds = seconds

    async def done(self, work: Work) -> bytes:
        """The answer that work gives, made in a thread.

        Args:
            work: A function that gives the answer, or a function that gives it after long work.

        Raises:
            RefusedError: If it takes too long, or the service stops. Work that has not begun by
                then is not done any more.
        """
        try:
            async with asyncio.timeout(self._seconds):
                found = await _result(self._brief, work)
                return found if isinstance(found, bytes) else await _result(self._long, found)
        except TimeoutError as error:
            raise RefusedError(
                503,
                problem(
                    f"an answer within {self._seconds:g} s", "none yet", "Ask for fewer inputs."
                ),
                {"Retry-After": "5"},
            ) from error

    def close(self) -> None:
        """Finish the work that has begun, and give up what waits."""
        for pool in (self._brief, self._long):
            pool.shutdown(wait=True, cancel_futures=True)


async def _result(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    try:
        future = pool.submit(work)
    except RuntimeError as error:  # the pool is shut down
        raise _stopped() from error
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _stopped() from None  # the pool has given the work up


def _stopped() -> RefusedError:
    return RefusedError(
        503,
        problem("a service that runs", "one that stops", "Try again."),
        {"Retry-After": "5"},
    )
