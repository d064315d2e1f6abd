"""Calls: every request of a client, and how its answer is read. Nothing here sends anything."""

import dataclasses
import datetime
import io
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import numpy as np

from streamgp.client.errors import ServiceError
from streamgp.client.results import RemotePrediction, RemoteReport
from streamgp.data.columns import loaded
from streamgp.errors import DataError, problem

_ARROW = "application/vnd.apache.arrow.stream"
_FILE = "application/octet-stream"
_AGAIN = frozenset({408, 429, 502, 503, 504})


@dataclasses.dataclass(frozen=True)
class Call:
    """One request.

    Attributes:
        method: GET, POST, PUT or DELETE.
        path: After the address of the service.
        read: From the answer to a result.
        json: The body, if it is JSON.
        content: The body, if it is bytes.
        headers: Further headers.
        safe: Whether it may be sent again if it is not known what became of it.
    """

    method: str
    path: str
    read: Callable[[Any], Any]
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    safe: bool = True


def result_of(call: Call, response: Any) -> Any:
    """The result that an answer holds.

    Raises:
        ServiceError: If the service refused the request.
    """
    if response.status_code < 400:
        return call.read(response)
    try:
        document = response.json()
        text = str(document["detail"])
    except (ValueError, KeyError, TypeError):
        document, text = {}, response.text[:200]
    raise ServiceError(text, response.status_code, document)


def is_worth_repeating(call: Call, status: int | None) -> bool:
    """Whether a request may be sent again after an answer, or after none."""
    return (call.safe and (status is None or status in _AGAIN)) or status == 429


def pause(attempt: int, longest: float, retry_after: str | None = None) -> float:
    """How many seconds to wait before the next attempt."""
    if retry_after is not None and re.fullmatch(r"[0-9]{1,5}", retry_after):
        return min(float(retry_after), longest)
    return min(0.1 * 2 ** min(attempt, 30), longest)


# -- the requests --------------------------------------------------------------------------------


def create(name: str, tables: Mapping[str, Any]) -> Call:
    return Call("POST", "/v1/models", _json, json={"name": name, **tables}, safe=False)


def models() -> Call:
    return Call("GET", "/v1/models?count=1000", lambda r: [m["name"] for m in r.json()["models"]])


def delete(path: str) -> Call:
    return Call("DELETE", path, lambda response: None, safe=False)


def get(path: str, part: str = "") -> Call:
    return Call("GET", f"{path}{part}", _json)


def download(path: str) -> Call:
    return Call("GET", f"{path}/file", lambda response: response.content)


def upload(path: str, data: bytes) -> Call:
    headers = {"Content-Type": _FILE}
    return Call("PUT", f"{path}/file", _json, content=data, headers=headers, safe=False)


def create_fleet(name: str, tables: Mapping[str, Any]) -> Call:
    return Call("POST", "/v1/fleets", _json, json={"name": name, **tables}, safe=False)


def keys(fleet: str) -> Call:
    where = f"/v1/fleets/{quote(fleet, safe='')}?count=1000"
    return Call("GET", where, lambda r: [m["name"] for m in r.json()["models"]])


def update_keys(fleet: str, data: Any, column: str, request: str | None) -> Call:
    """Observations of many keys."""
    called = update(f"/v1/fleets/{quote(fleet, safe='')}", data, request)
    return dataclasses.replace(called, path=f"{called.path}?key={quote(column, safe='')}")


def update(path: str, data: Any, key: str | None) -> Call:
    """Observations. They have an idempotency key, so they may be sent again."""
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    where = f"{path}/observations"

    def read(response: Any) -> RemoteReport:
        return RemoteReport(response.json())

    if isinstance(data, loaded("pandas", "DataFrame") + loaded("polars", "DataFrame")):
        headers["Content-Type"] = _ARROW
        return Call("POST", where, read, content=_arrow(data), headers=headers)
    if not isinstance(data, list):
        raise DataError(
            problem("a frame, or a list of rows", type(data).__name__, "Make a frame of it.")
        )
    return Call("POST", where, read, json=_plain(data), headers=headers)


def predict(path: str, channel: str | None, asked: Mapping[str, Any]) -> Call:
    body = {name: value for name, value in asked.items() if value is not None}
    if channel is not None:
        body["channels"] = [channel]

    def read(response: Any) -> Any:
        found = response.json()
        parts = {
            name: RemotePrediction(found["inputs"], columns)
            for name, columns in found["channels"].items()
        }
        return next(iter(parts.values())) if len(parts) == 1 else parts

    return Call("POST", f"{path}/predict", read, json=body)


def inputs_of(x: Any) -> Any:
    """Inputs as a service takes them: a column, rows, or columns by name."""
    if isinstance(x, loaded("pandas", "DataFrame") + loaded("polars", "DataFrame")):
        return {str(name): _plain(list(x[name])) for name in x.columns}
    if isinstance(x, np.ndarray) and x.dtype.kind == "M":
        return [str(value) for value in x]
    return _plain(list(x))


def path_of(*names: str) -> str:
    """The path of a model, or of a fleet and a key."""
    kind = "models" if len(names) == 1 else "fleets"
    return "/".join([f"/v1/{kind}", *(quote(name, safe="") for name in names)])


def _json(response: Any) -> Any:
    return response.json()


def _arrow(frame: Any) -> bytes:
    import pyarrow as pa

    if isinstance(frame, loaded("pandas", "DataFrame")):
        table = pa.Table.from_pandas(frame, preserve_index=False)
    else:
        table = frame.to_arrow()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return str(value) if value.dtype.kind == "M" else _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime.date) else value
