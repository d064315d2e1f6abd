"""Tensors of the Open Inference Protocol: requests read, predictions written.

Input tensors may be in the JSON document, or after it as binary data, as Triton's client sends
them.
"""

import struct
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import streamgp as sgp
from streamgp.errors import DataError, problem
from streamgp.service.problems import RefusedError
from streamgp.service.readers import Rest
from streamgp.service.settings import Limits
from streamgp.service.sizes import BRIEF, check_answer, check_inputs
from streamgp.service.wire import read_json, written

_NUMBERS = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1",
    "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip

# Of a request, for the description of the service.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "inputs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "shape", "datatype"],
                "properties": {
                    "name": {"type": "string"},
                    "shape": {"type": "array", "items": {"type": "integer"}},
                    "datatype": {"type": "string", "enum": [*_NUMBERS, "BYTES"]},
                    "data": {"type": "array"},
                },
            },
        },
        "parameters": {
            "type": "object",
            "properties": {
                "level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
            },
        },
        "outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
            },
        },
    },
}


class Asked(NamedTuple):
    """A request for predictions.

    Attributes:
        id: The client's own name of the request.
        inputs: Columns of inputs, by name.
        level: The probability of the intervals.
        outputs: The names of the tensors that are wanted; None for all.
    """

    id: str | None
    inputs: dict[str, np.ndarray]
    level: float
    outputs: list[str] | None


def read(body: bytes, header: int | None) -> Asked:
    """Read a request.

    Args:
        body: The JSON document, perhaps with binary data after it.
        header: The length of the JSON document, if there is binary data.

    Raises:
        DataError: If it is something else.
    """
    try:
        size = len(body) if header is None else header
        document, rest = read_json(body[:size]), body[size:]
        inputs = {}
        for tensor in document["inputs"]:
            values, rest = _values(tensor, rest)
            inputs[str(tensor["name"])] = values
        level = float((document.get("parameters") or {}).get("level", 0.95))
        wanted = document.get("outputs")
        outputs = None if not wanted else [str(each["name"]) for each in wanted]
        name = document.get("id")
        return Asked(None if name is None else str(name)[:200], inputs, level, outputs)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise DataError(
            problem(
                "a request of the Open Inference Protocol, with `inputs`",
                f"{type(error).__name__}: {str(error)[:200]}",
                "See GET /v2/models/{name} for the tensors.",
            )
        ) from error


def _values(tensor: dict[str, Any], rest: bytes) -> tuple[np.ndarray, bytes]:
    """The values of a tensor, and the binary data of the tensors after it."""
    kind, shape = tensor["datatype"], [int(size) for size in tensor["shape"]]
    size = (tensor.get("parameters") or {}).get("binary_data_size")
    if size is None:
        data = np.asarray(tensor["data"])
        values = data.astype(object if kind == "BYTES" else float).reshape(shape)
        return values, rest
    own, rest = rest[: int(size)], rest[int(size) :]
    if kind == "BYTES":
        return np.asarray(_texts(own), object).reshape(shape), rest
    return np.frombuffer(own, _NUMBERS[kind]).astype(float).reshape(shape), rest


def _texts(data: bytes) -> list[str]:
    """Texts, each after its length."""
    found = []
    while data:
        (size,) = struct.unpack_from("<I", data)
        found.append(data[4 : 4 + size].decode())
        data = data[4 + size :]
    return found


def metadata(name: str, model: sgp.ContinualGP) -> dict[str, Any]:
    """What tensors a model takes and gives."""
    axes = zip(model.input_names, model.axes, strict=True)
    inputs = [
        {"name": column, "datatype": "BYTES" if axis.is_time else "FP64", "shape": [-1]}
        for column, axis in axes
    ]
    outputs: list[dict[str, Any]] = []
    if model.state is not None:
        first = model.inducing_points[0][:1]
        columns = [axis.values(first[:, i]) for i, axis in enumerate(model.axes)]
        x = columns[0] if len(columns) == 1 else pd.DataFrame(
            dict(zip(model.input_names, columns, strict=True))
        )  # fmt: skip
        outputs = [
            {"name": tensor, "datatype": _datatype(values), "shape": [-1]}
            for tensor, values in _outputs(model, x, 0.95).items()
        ]
    return {
        "name": name,
        "versions": [version_of(model)],
        "platform": "streamgp",
        "inputs": inputs,
        "outputs": outputs,
    }


def version_of(model: sgp.ContinualGP) -> str:
    """The version of a model that is served: the number of its updates."""
    return str(model._version.progress.updates)


def check_version(name: str, model: sgp.ContinualGP, asked: str | None) -> None:
    """Refuse if another version of a model is asked for than the one that is served."""
    served = version_of(model)
    if asked is not None and asked != served:
        text = problem(
            f"version {served!r} of {name!r}, the latest",
            repr(asked[:100]),
            "Leave the version out to get the latest.",
        )
        raise RefusedError(404, text)


def check_ready(name: str, model: sgp.ContinualGP) -> None:
    """Refuse if a model cannot predict yet."""
    if model.state is None:
        text = problem("a model with data", f"{name!r} without", "Send observations first.")
        raise RefusedError(400, text)


def inferred(name: str, model: sgp.ContinualGP, asked: Asked, limits: Limits) -> bytes | Rest:
    """Predict what was asked for, and write it as JSON.

    Returns:
        The answer; or what makes it, if that takes long.

    Raises:
        DataError: If the tensors do not fit the model.
        RefusedError: If they are too many.
    """
    check_ready(name, model)
    x = _inputs(model, asked.inputs)
    check_inputs(len(x), len(model.channels), limits)
    make = partial(_answer, name, model, x, asked, limits)
    if len(x) * len(model.channels) <= BRIEF:
        return make()
    check_answer(_wanted(model, x[:1], asked), limits, len(x))
    return make


def _answer(name: str, model: sgp.ContinualGP, x: Any, asked: Asked, limits: Limits) -> bytes:
    found = _wanted(model, x, asked)
    check_answer(found, limits)
    outputs = [
        {
            "name": tensor,
            "datatype": _datatype(values),
            "shape": list(values.shape),
            "data": values.ravel(),
        }
        for tensor, values in found.items()
    ]
    answer = {"model_name": name, "model_version": version_of(model), "outputs": outputs}
    return written(answer if asked.id is None else {**answer, "id": asked.id})


def _wanted(model: sgp.ContinualGP, x: Any, asked: Asked) -> dict[str, np.ndarray]:
    """The tensors that were asked for."""
    found = _outputs(model, x, asked.level)
    unknown = [tensor for tensor in asked.outputs or () if tensor not in found]
    if unknown:
        raise DataError(problem(f"outputs among {[*found]}", repr(unknown[0]), "Check the name."))
    return found if asked.outputs is None else {name: found[name] for name in asked.outputs}


def _inputs(model: sgp.ContinualGP, given: dict[str, np.ndarray]) -> Any:
    names = list(model.input_names)
    if len(given) == 1:  # one tensor of all inputs, whatever its name
        (values,) = given.values()
        table = values.reshape(len(values), -1) if values.ndim else values.reshape(1, 1)
    else:
        missing = [name for name in names if name not in given]
        if missing or len({values.size for values in given.values()}) != 1:
            raise DataError(problem(f"tensors {names} of one size", f"{[*given]}", "Give them."))
        table = np.stack([given[name].ravel() for name in names], axis=1)
    if table.shape[1] != len(names):
        raise DataError(
            problem(f"{len(names)} inputs per row", f"{table.shape[1]}", "Give all of them.")
        )
    columns = [column.tolist() for column in table.T]
    return columns[0] if len(columns) == 1 else pd.DataFrame(dict(zip(names, columns, strict=True)))


def _outputs(model: sgp.ContinualGP, x: Any, level: float) -> dict[str, np.ndarray]:
    return {
        f"{name}_{what}": np.asarray(values)
        for name in model.channels
        for what, values in model.predict(x, name).columns(level).items()
    }


def _datatype(values: np.ndarray) -> str:
    return "FP64" if values.dtype.kind == "f" else "BYTES"
