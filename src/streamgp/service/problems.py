"""Problems: every error as a document (RFC 9457) with what was expected, what came, what to do."""

import logging
from collections.abc import Iterable, Mapping
from http import HTTPMethod, HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match

from streamgp.errors import (
    ConfigurationError,
    DataError,
    FileError,
    NumericalError,
    Problem,
    StoreError,
    StreamGPError,
    problem,
)

MEDIA_TYPE = "application/problem+json"
_PROTOCOL = "/v2"  # the Open Inference Protocol has a form of its own for errors
_log = logging.getLogger(__name__)


class RefusedError(StreamGPError):
    """A request that the service does not carry out.

    Args:
        status: The status of the answer.
        text: What was expected, what came and what to do.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, text: Problem, headers: Mapping[str, str] | None = None):
        super().__init__(text)
        self.status, self.headers = status, dict(headers or {})


def not_found(what: str, name: str) -> RefusedError:
    """Nothing has that name."""
    return RefusedError(404, problem(f"a {what} that exists", repr(name), "Check the name."))


def busy(expected: str, got: str, seconds: int) -> RefusedError:
    """There is no room for more work now."""
    remedy = f"Try again after {seconds} s, with the same idempotency key."
    return RefusedError(429, problem(expected, got, remedy), {"Retry-After": str(seconds)})


_STATUS: dict[type[StreamGPError], int] = {
    DataError: 422,
    ConfigurationError: 422,
    FileError: 422,
    NumericalError: 422,
    StoreError: 503,
}


def document(
    status: int,
    text: str,
    instance: str = "",
    headers: Mapping[str, str] | None = None,
    kind: str = "about:blank",
) -> JSONResponse:
    """The answer that tells of a problem.

    Args:
        status: Of the answer.
        text: What was expected, what came and what to do.
        instance: The path that was asked for.
        headers: Further headers.
        kind: What kind of problem it is, as a URI.
    """
    if f"{instance}/".startswith(f"{_PROTOCOL}/"):
        return JSONResponse({"error": str(text)}, status, headers=dict(headers or {}))
    body: dict[str, Any] = {
        "type": kind,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": str(text),
        "instance": instance,
    }
    body |= _parts(text)
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def explained(error: Exception) -> dict[str, str]:
    """What went wrong with a part of a request, as JSON."""
    if not isinstance(error, StreamGPError):
        _log.error("unforeseen", exc_info=error)
        return {"detail": f"a {type(error).__name__}: see the log of the service"}
    text = error.args[0] if error.args else str(error)
    return {"detail": str(text)} | _parts(text)


def _parts(text: Any) -> dict[str, str]:
    """What was expected, what came and what to do, where a text has these parts."""
    if not isinstance(text, Problem):
        return {}
    return {"expected": text.expected, "got": text.got, "remedy": text.remedy}


def install(app: FastAPI) -> None:
    """Let an application answer every error with such a document."""
    app.add_exception_handler(StreamGPError, _ours)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unforeseen)


async def _ours(request: Request, error: Any) -> JSONResponse:
    text = error.args[0] if error.args else str(error)
    kind = f"urn:streamgp:{type(error).__name__}"
    if isinstance(error, RefusedError):
        return document(error.status, text, request.url.path, error.headers, kind)
    return document(_STATUS.get(type(error), 500), text, request.url.path, kind=kind)


async def _of_framework(request: Request, error: Any) -> JSONResponse:
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:  # the framework names those of one route
        headers["Allow"] = ", ".join(_methods(request))
    return document(error.status_code, error.detail, request.url.path, headers)


def _methods(request: Request) -> list[str]:
    """The methods that a path has, of all of its routes."""
    routes = request.app.router.routes
    return [
        method
        for method in HTTPMethod
        if any(
            route.matches({**request.scope, "method": str(method)})[0] is Match.FULL
            for route in routes
        )
    ]


async def _invalid(request: Request, error: Any) -> JSONResponse:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    text = problem(
        f"a request that the description of the service allows: {first['msg']}",
        f"{str(first.get('input'))[:200]} at {place}",
        "See /openapi.json.",
    )
    return document(422, text, request.url.path, kind="urn:streamgp:InvalidRequest")


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    _log.error("unforeseen", exc_info=error, extra={"path": request.url.path})
    text = problem(
        "an answer", f"a {type(error).__name__}", "This is a fault of the service: see its log."
    )
    return document(500, text, request.url.path)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for the description of the service."""
    return _described(MEDIA_TYPE, "ProblemDocument", statuses)


def described_in_protocol(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The same for a route of the Open Inference Protocol."""
    return _described("application/json", "InferenceError", statuses)


def _described(kind: str, shape: str, statuses: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    schema = {"$ref": f"#/components/schemas/{shape}"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {kind: {"schema": schema}},
        }
        for status in sorted({400, 401, 403, 408, 422, *statuses})
    }
