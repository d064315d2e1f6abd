"""The page to watch models on, and what it is made of. All of it comes from this service."""

import functools
import gzip
from importlib import resources

from fastapi import APIRouter, Request, Response

from streamgp.service.problems import described as problems
from streamgp.service.problems import not_found

router = APIRouter(include_in_schema=False)
_KINDS = {
    "dashboard.css": "text/css",
    "dashboard.js": "text/javascript",
    "charts.js": "text/javascript",
    "forms.js": "text/javascript",
    "service.js": "text/javascript",
    "small.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "plotly.min.js": "text/javascript",
}


@router.get("/", responses=problems())
async def page() -> Response:
    """The page."""
    return Response(_bytes("index.html"), media_type="text/html")


@router.get("/page/{name}", responses=problems(404))
async def part(name: str, request: Request) -> Response:
    """A part of the page: only those that are listed above."""
    if name not in _KINDS:
        raise not_found("part of the page", name)
    headers = {"Cache-Control": "no-cache"}
    if name == "plotly.min.js":
        headers = {"Cache-Control": "private, max-age=86400"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            return Response(_zipped(name), media_type=_KINDS[name], headers=headers)
    return Response(_bytes(name), media_type=_KINDS[name], headers=headers)


@functools.cache
def _bytes(name: str) -> bytes:
    if name == "plotly.min.js":
        return (resources.files("plotly") / "package_data" / name).read_bytes()
    return (resources.files("streamgp.service") / "page" / name).read_bytes()


@functools.cache
def _zipped(name: str) -> bytes:
    return gzip.compress(_bytes(name), 6)
