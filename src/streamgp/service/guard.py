"""Guard: around every request. An id, a line in the log, security headers, and a count."""

import json
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("streamgp.service.requests")
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

# Plotly sets styles of elements; scripts come from this service alone.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

Counted = Callable[[str, str, int, float], None]


class Guard:
    """Middleware.

    Args:
        app: What is inside.
        counted: Is told of every request: method, route, status and seconds.
    """

    def __init__(self, app: ASGIApp, counted: Counted):
        self._app, self._counted = app, counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and watch over its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = name
        status, begin = 500, time.perf_counter()

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", name.encode()), *_HEADERS]
                if not any(key == b"cache-control" for key, _ in message["headers"]):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        finally:
            seconds = time.perf_counter() - begin
            route = getattr(scope.get("route"), "path", "unknown")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._counted(method, route, status, seconds)
            owner = scope["state"].get("owner")
            _log.info(
                "request",
                extra={
                    "fields": {
                        "request_id": name,
                        "method": method,
                        "path": scope["path"][:200],
                        "status": status,
                        "milliseconds": round(1e3 * seconds, 2),
                        "token": owner,
                    }
                },
            )


_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})


def _request_id(scope: Scope) -> str:
    """The client's id of the request, if it is one that may stand in a header and in a log."""
    given = dict(scope["headers"]).get(b"x-request-id", b"")
    return given.decode() if _ID.fullmatch(given) else secrets.token_hex(8)


class Lines(logging.Formatter):
    """One JSON object per line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as such a line."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
