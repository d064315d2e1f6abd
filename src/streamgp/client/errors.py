"""What a service answers instead of a result."""

from typing import Any

from streamgp.errors import StreamGPError


class ServiceError(StreamGPError):
    """A service refused a request, or could not be reached.

    Attributes:
        status: The status of its answer; None if there was none.
        problem: The document that tells what was expected, what came and what to do.
    """

    def __init__(self, text: str, status: int | None = None, problem: Any = None):
        super().__init__(text)
        self.status, self.problem = status, problem or {}
