"""Bodies: what a client sends, in bounded time and within bounded memory.

`Bounded` keeps the bounds where bytes come in, whoever reads them; `read_body` decompresses.
"""

import asyncio
import zlib
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgp.errors import Problem, problem
from streamgp.service.problems import RefusedError, document
from streamgp.service.settings import Limits
from streamgp.service.wire import JSON, read_json

Shape = TypeVar("Shape", bound=BaseModel)

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


async def json_body(request: Request, limits: Limits) -> bytes:
    """The bytes of a request whose body is JSON.

    The content type has to be there: a page of another site can post without one to a service on
    this machine, and a browser does not ask the service first.

    Raises:
        RefusedError: If the content type is another one, or as in `read_body`.
    """
    check_type(content_type(request), (JSON,))
    return await read_body(request, limits)


def content_type(request: Request) -> str:
    """The content type of a request, without parameters; "none" if it names none."""
    given = request.headers.get("content-type", "")
    return given.split(";")[0].strip().lower() or "none"


def check_type(given: str, known: tuple[str, ...]) -> None:
    """Refuse a content type that is not among those that are known."""
    if given not in known:
        raise RefusedError(
            415,
            problem(
                f"a content type among {[*known]}", repr(given[:100]), "Name it in the request."
            ),
        )


def shaped(shape: type[Shape], body: bytes) -> Shape:
    """A body in JSON as what the description of the service says it is.

    Raises:
        RequestValidationError: If it is something else.
    """
    try:
        return shape.model_validate(read_json(body))
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error
    except ValueError as error:
        text = str(error)[:200]
        raise RequestValidationError(
            [{"loc": ("body",), "msg": text, "input": "others"}]
        ) from error


def described_body(shape: type[BaseModel]) -> dict[str, Any]:
    """What the description of the service says of such a body."""
    schema = {"$ref": f"#/components/schemas/{shape.__name__}"}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


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
