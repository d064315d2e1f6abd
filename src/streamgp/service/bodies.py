"""Bodies: what a client sends, in bounded time and within bounded memory."""

import asyncio
import zlib

from fastapi import Request
from starlette.requests import ClientDisconnect

from streamgp.errors import problem
from streamgp.service.problems import Refusal
from streamgp.service.settings import Limits

_GZIP = 31  # zlib's window bits for a gzip header


async def read_body(request: Request, limits: Limits) -> bytes:
    """The bytes of a request, decompressed.

    Args:
        request: The request.
        limits: What a client may send at most.

    Returns:
        The bytes.

    Raises:
        Refusal: If they are too many, too slow, or compressed otherwise than by gzip.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Refusal(
            415, problem("a body as it is, or in gzip", repr(encoding[:50]), "Use gzip, or none.")
        )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.body:
        raise too_large(limits.body)
    try:
        async with asyncio.timeout(limits.body_seconds):
            raw = await _received(request, limits.body)
    except TimeoutError as error:
        raise Refusal(
            408,
            problem(
                f"a body within {limits.body_seconds:g} s", "a slower one", "Send less at a time."
            ),
        ) from error
    except ClientDisconnect as error:
        raise Refusal(400, problem("a whole body", "a part of it", "Send it again.")) from error
    return raw if encoding == "identity" else _unzipped(raw, limits.body)


async def _received(request: Request, most: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise too_large(most)
        parts.append(part)
    return b"".join(parts)


def _unzipped(raw: bytes, most: int) -> bytes:
    """The bytes that a gzip file holds, unless they are too many."""
    machine = zlib.decompressobj(_GZIP)
    try:
        whole = machine.decompress(raw, most + 1)
    except zlib.error as error:
        raise Refusal(
            400, problem("a body in gzip", str(error), "Compress it with gzip.")
        ) from error
    if len(whole) > most:
        raise too_large(most)
    if not machine.eof or machine.unused_data:
        raise Refusal(400, problem("one whole gzip file", "a part or several", "Send one."))
    return whole


def too_large(most: int) -> Refusal:
    """A body has more bytes than one may have."""
    return Refusal(
        413, problem(f"at most {most} bytes, decompressed", "more", "Send less at a time.")
    )
