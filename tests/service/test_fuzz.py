"""Anything may come in: no answer is a fault of the service, and each is one that is described."""

import io
import json
import re
from unittest import SkipTest

import pyarrow as pa
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from streamgp.service.names import PATTERN
from tests.service.running import rows, serving, specification

# `streamgp-lab check service_fuzz` makes all checks, with tokens and in chains of requests.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
RELAXED = settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
# Numbers as large as those that are fuzzed overflow, and look like times, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """A service with a model and a fleet of the same name."""
    where = tmp_path_factory.mktemp("fuzzed") / "models.db"
    with serving(where, rows=200, predictions=2000, models=50) as client:
        client.post("/v1/models", json=specification("plant"))
        client.post("/v1/models/plant/observations", json=rows())
        client.post("/v1/fleets", json=specification("plant"))
        client.post("/v1/fleets/plant/plant/observations", json=rows())
        yield client


@pytest.fixture(scope="module")
def described(fuzzed):
    document = fuzzed.get("/openapi.json").json()
    for methods in document["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)  # this service asks for no tokens
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=str(fuzzed.base_url))
    return schema.exclude(path_regex="events$")  # they never end


@pytest.mark.parametrize("mode", GenerationMode)
def test_valid_and_invalid_requests_are_answered_as_described(described, mode):
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:

        @given(operation.as_strategy(generation_mode=mode))
        @settings(RELAXED, max_examples=10)
        def check(case):
            parts = case.path_parameters or {}
            if case.method != "DELETE" and re.fullmatch(PATTERN, str(parts.get("name", ""))):
                parts["name"] = "plant"  # else hardly a request would find a model
            case.call_and_validate(checks=CHECKS)

        try:
            check()
        except (SkipTest, Unsatisfiable):  # nothing about it can be invalid
            assert mode is GenerationMode.NEGATIVE


NUMBERS = st.one_of(
    st.floats(-100, 100), st.integers(), st.floats(), st.none(), st.booleans(), st.text(max_size=5)
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(["hour", "level", "alarm", "other"]), NUMBERS), max_size=5
)


def answered(fuzzed, path, body, kind):
    answer = fuzzed.post(path, content=body, headers={"Content-Type": kind})
    assert answer.status_code in (200, 422), answer.text


@given(ROWS)
@RELAXED
def test_any_rows_as_json_and_ndjson(fuzzed, batch):
    where = "/v1/models/plant/observations"
    answered(fuzzed, where, json.dumps(batch).encode(), "application/json")
    lines = "\n".join(json.dumps(row) for row in batch)
    answered(fuzzed, where, lines.encode(), "application/x-ndjson")


@given(
    st.binary(max_size=200),
    st.sampled_from(["application/json", "text/csv", "application/x-ndjson"]),
)
@RELAXED
def test_any_bytes(fuzzed, body, kind):
    answered(fuzzed, "/v1/models/plant/observations", body, kind)


def stream():
    table = pa.table({"hour": [1.0, 2.0], "level": [0.5, None], "alarm": [True, False]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


STREAM = stream()


@given(
    st.lists(st.tuples(st.integers(0, len(STREAM) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, len(STREAM)),
)
@settings(RELAXED, max_examples=150)
def test_damaged_arrow_streams(fuzzed, changes, end):
    damaged = bytearray(STREAM)
    for at, byte in changes:
        damaged[at] = byte
    whole = bytes(damaged) if end % 2 else bytes(damaged[:end])
    answered(fuzzed, "/v1/models/plant/observations", whole, "application/vnd.apache.arrow.stream")


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"hour": pa.nulls(10**6)}),
        pa.table({"hour": [[1.0]]}),
        pa.table({"hour": pa.array(["a"]).dictionary_encode()}),
        pa.table({"hour": [1.0] * 201}),
        pa.table({"hour": [b"x"]}),
    ],
)
def test_arrow_columns_that_would_unfold(fuzzed, table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    where, kind = "/v1/models/plant/observations", "application/vnd.apache.arrow.stream"
    answer = fuzzed.post(where, content=sink.getvalue(), headers={"Content-Type": kind})
    assert answer.status_code == 422


def test_compressed_arrow_buffers_are_refused(fuzzed):
    table, sink = pa.table({"hour": [0.0] * 100, "level": [0.0] * 100}), io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    where, kind = "/v1/models/plant/observations", "application/vnd.apache.arrow.stream"
    answer = fuzzed.post(where, content=sink.getvalue(), headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert "compression" in answer.json()["detail"]


@given(
    st.one_of(
        st.lists(NUMBERS, max_size=4),
        st.dictionaries(st.sampled_from(["hour", "x"]), st.lists(NUMBERS, max_size=3)),
        st.lists(st.lists(NUMBERS, max_size=2), max_size=3),
    )
)
@RELAXED
def test_any_inputs(fuzzed, inputs):
    body = json.dumps({"inputs": inputs}).encode()
    answered(fuzzed, "/v1/models/plant/predict", body, "application/json")
