"""Lanes: work that changes a model waits in the model's own lane, and one piece is done at a time.

Lanes of different models are worked off in parallel, by a fixed number of threads. A lane that is
full refuses more work. Reads do not come here: they never wait for a change.
"""

import dataclasses
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from streamgp.errors import problem
from streamgp.service.memory import give_back
from streamgp.service.problems import RefusedError, busy

_LATEST = 0.2  # the weight of the latest piece of work in the average of how long one takes


@dataclasses.dataclass
class _Lane:
    """The work that waits for one model."""

    waiting: deque[tuple[Callable[[], Any], Future]] = dataclasses.field(default_factory=deque)
    active: bool = False


class Lanes:
    """One lane per key.

    Args:
        workers: How many lanes are worked off at the same time.
        each: How many pieces of work may wait in one lane.
        together: How many may wait in all lanes.
    """

    def __init__(self, workers: int, each: int, together: int):
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="streamgp-writer")
        self._each, self._together, self._workers = each, together, workers
        self._lock = threading.Lock()
        self._lanes: dict[str, _Lane] = {}
        self._count = 0
        self._seconds = 0.1  # that a piece of work takes, on average
        self._closed = False

    def submit(self, key: str, work: Callable[[], Any]) -> Future:
        """Put work at the end of a lane.

        Args:
            key: Of the lane.
            work: A function. It is called in a thread of the pool.

        Returns:
            The future result.

        Raises:
            RefusedError: If there is no room for more.
        """
        future: Future = Future()
        with self._lock:
            if self._closed:
                raise RefusedError(
                    503,
                    problem("a service that runs", "one that stops", "Try again."),
                    {"Retry-After": "5"},
                )
            lane = self._lanes.setdefault(key, _Lane())
            if len(lane.waiting) >= self._each or self._count >= self._together:
                raise busy(
                    f"at most {self._each} batches that wait for a model",
                    f"{len(lane.waiting)} for this one, {self._count} for all",
                    self._patience(len(lane.waiting)),
                )
            lane.waiting.append((work, future))
            self._count += 1
            if not lane.active:
                lane.active = True
                self._pool.submit(self._next, key, lane)
        return future

    def _patience(self, before: int) -> int:
        """After how many seconds half of the lane, or its share of all, will have been done."""
        most = max(before, self._count / self._workers)
        return max(1, math.ceil(most * self._seconds / 2))

    def _next(self, key: str, lane: _Lane) -> None:
        """Do one piece of work of a lane. If there is more, it takes its turn among the lanes."""
        with self._lock:
            work, future = lane.waiting.popleft()
            self._count -= 1
        begin = time.perf_counter()
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # whoever waits for it has to know
                future.set_exception(error)
        del work, future
        seconds = time.perf_counter() - begin
        give_back(seconds)
        with self._lock:
            self._seconds += _LATEST * (seconds - self._seconds)
            if lane.waiting and not self._closed:
                self._pool.submit(self._next, key, lane)
            else:
                lane.active = False
                for _, left in lane.waiting:
                    left.cancel()
                self._count -= len(lane.waiting)
                self._lanes.pop(key, None)

    def waiting(self, key: str) -> int:
        """How much work waits in a lane."""
        with self._lock:
            lane = self._lanes.get(key)
            return 0 if lane is None else len(lane.waiting)

    @property
    def total(self) -> int:
        """How much work waits in all lanes."""
        return self._count

    def close(self) -> None:
        """Finish the work that has begun, and give up what waits: nobody has been promised it."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True)
