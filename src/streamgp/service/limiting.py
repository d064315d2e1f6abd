"""Bounded: no request body is larger than one may be, whoever reads it.

Routes that take JSON let the framework read the body, so the bound is kept here, where the bytes
come in.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgp.service.bodies import too_large
from streamgp.service.problems import document
from streamgp.service.settings import Limits


class Bounded:
    """Middleware.

    Args:
        app: What is inside.
        limits: How large a body may be.
    """

    def __init__(self, app: ASGIApp, limits: Limits):
        self._app, self._most, self._seconds = app, limits.body, limits.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless its body is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._most:
            error = too_large(self._most)
            await document(413, error.args[0], scope["path"])(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > self._most:
                    raise too_large(self._most)
            return message

        await self._app(scope, counted, send)
