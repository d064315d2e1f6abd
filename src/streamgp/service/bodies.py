"""Bodies: what a client sends, in bounded time and within bounded memory.

`Bounded` keeps the bounds where bytes come in, whoever reads them; `read_body` decompresses.
"""

import asyncio
import zlib

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgp.errors import Problem, problem
from streamgp.service.problems import RefusedError, document
from streamgp.service.settings import Limits

_GZIP = 31  # zlib's window bits for a gzip header


class Bounded:
    """Middleware: no body is larger or slower than one may be.

    Args:
        app: What is inside.
        limits: How large and how slow a body may be.
    """

    def __init__(self, app: ASGIApp, limits: Limits):
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless its body is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._limits.body:
            refused = document(413, _too_large(self._limits.body), scope["path"])
            await refused(scope, receive, send)
            return
        until = asyncio.get_running_loop().time() + self._limits.body_seconds
        size, complete = 0, False

        async def counted() -> Message:
            nonlocal size, complete
            if complete:  # what comes now is that the client goes
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError as error:
                # The framework lets its own errors pass while it reads a body, and no others.
                raise HTTPException(408, _too_slow(self._limits.body_seconds)) from error
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if size > self._limits.body:
                    raise HTTPException(413, _too_large(self._limits.body))
            return message

        await self._app(scope, counted, send)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The bytes of a request, decompressed.

    Args:
        request: The request.
        limits: What a client may send at most.

    Returns:
        The bytes.

    Raises:
        RefusedError: If they are too many, or compressed otherwise than by gzip.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise RefusedError(
            415, problem("a body as it is, or in gzip", repr(encoding[:50]), "Use gzip, or none.")
        )
    try:
        raw = await request.body()
    except ClientDisconnect as error:
        raise RefusedError(
            400, problem("a whole body", "a part of it", "Send it again.")
        ) from error
    return raw if encoding == "identity" else _unzipped(raw, limits.body)


def _unzipped(raw: bytes, most: int) -> bytes:
    """The bytes that a gzip file holds, unless they are too many."""
    machine = zlib.decompressobj(_GZIP)
    try:
        whole = machine.decompress(raw, most + 1)
    except zlib.error as error:
        raise RefusedError(
            400, problem("a body in gzip", str(error), "Compress it with gzip.")
        ) from error
    if len(whole) > most:
        raise RefusedError(413, _too_large(most))
    if not machine.eof or machine.unused_data:
        raise RefusedError(400, problem("one whole gzip file", "a part or several", "Send one."))
    return whole


def _too_large(most: int) -> Problem:
    return problem(f"at most {most} bytes, decompressed", "more", "Send less at a time.")


def _too_slow(seconds: float) -> Problem:
    return problem(f"a body within {seconds:g} s", "a slower one", "Send less at a time.")
