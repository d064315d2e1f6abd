"""The Open Inference Protocol, with Triton's own client."""

import json
import warnings

import numpy as np
import pytest

from tests.service.running import rows
from tests.service.test_routes import INPUTS, local, made, refused_by_protocol

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    triton = pytest.importorskip("tritonclient.http", reason="needs tritonclient[http]")
    from tritonclient.utils import InferenceServerException


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("binary", [True, False])
def test_tritons_client_works_unchanged(service, binary):
    made(service, "plant", rows())
    client = triton.InferenceServerClient(f"127.0.0.1:{service.base_url.port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("plant")
    assert not client.is_model_ready("other")
    assert client.get_model_metadata("plant")["inputs"][0]["name"] == "hour"
    tensor = triton.InferInput("hour", [4], "FP64")
    tensor.set_data_from_numpy(np.array(INPUTS), binary_data=binary)
    wanted = local(rows()).predict(INPUTS, "level")
    whole = client.infer("plant", [tensor])
    np.testing.assert_array_equal(whole.as_numpy("level_mean"), wanted.mean)
    only = [triton.InferRequestedOutput("level_upper", binary_data=binary)]
    part = client.infer("plant", [tensor], outputs=only, request_id="7")
    np.testing.assert_array_equal(part.as_numpy("level_upper"), wanted.interval(0.95)[1])
    assert part.get_response()["id"] == "7"
    client.close()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"inputs": []},
        {"inputs": [{"name": "hour", "shape": [2], "datatype": "FP64", "data": [1.0]}]},
        {"inputs": [{"name": "hour", "shape": [1], "datatype": "FP64", "data": ["x"]}]},
        {"inputs": [{"name": "hour", "shape": [1, 2], "datatype": "FP64", "data": [1.0, 2.0]}]},
        {"inputs": [{"name": "hour", "shape": [-1], "datatype": "FP64", "data": None}]},
        {"inputs": 3},
        [],
    ],
)
def test_bad_tensors_are_refused(shared, body):
    if shared.get("/v1/models/tensors").status_code == 404:
        made(shared, "tensors", rows())
    refused_by_protocol(shared.post("/v2/models/tensors/infer", json=body), 422)


@pytest.mark.filterwarnings("ignore")
def test_tritons_client_names_versions(service):
    made(service, "plant", rows())
    client = triton.InferenceServerClient(f"127.0.0.1:{service.base_url.port}")
    tensor = triton.InferInput("hour", [4], "FP64")
    tensor.set_data_from_numpy(np.array(INPUTS))
    assert client.get_model_metadata("plant")["versions"] == ["1"]
    assert client.get_model_metadata("plant", "1") == client.get_model_metadata("plant")
    assert client.is_model_ready("plant", "1")
    found = client.infer("plant", [tensor], model_version="1")
    wanted = local(rows()).predict(INPUTS, "level")
    np.testing.assert_array_equal(found.as_numpy("level_mean"), wanted.mean)
    assert found.get_response()["model_version"] == "1"

    service.post("/v1/models/plant/observations", json=rows(begin=10))
    assert client.is_model_ready("plant", "2")
    assert not client.is_model_ready("plant", "1")  # only the latest version is served
    with pytest.raises(InferenceServerException, match="version '2' of 'plant'"):
        client.get_model_metadata("plant", "1")
    with pytest.raises(InferenceServerException, match="Leave the version out"):
        client.infer("plant", [tensor], model_version="1")
    with pytest.raises(InferenceServerException, match="a model that exists"):
        client.infer("other", [tensor])
    client.close()


def test_errors_have_the_form_of_the_protocol(service):
    made(service, "plant", rows())
    made(service, "young")
    where = "/v2/models/plant/infer"
    kind = {"Content-Type": "application/json"}
    for status, answer in (
        (400, service.get("/v2/models/young/ready")),
        (400, service.get("/v2/models/young/versions/0/ready")),
        (404, service.get("/v2/models/other")),
        (404, service.get("/v2/models/plant/versions/7")),
        (404, service.get("/v2/nowhere")),
        (405, service.put(where)),
        (413, service.post(where, content=b" " * (17 * 2**20), headers=kind)),
        (415, service.post(where, content=b"{}", headers={"Content-Type": "text/plain"})),
        (422, service.get("/v2/models/-")),
        (422, service.post(where, content=b"{", headers=kind)),
    ):
        assert refused_by_protocol(answer, status).startswith(("expected", "Not", "Method"))


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/csv"])
def test_other_content_types_are_refused(shared, kind):
    if shared.get("/v1/models/tensors").status_code == 404:
        made(shared, "tensors", rows())
    tensor = {"name": "hour", "shape": [1], "datatype": "FP64", "data": [1.0]}
    where, body = "/v2/models/tensors/infer", json.dumps({"inputs": [tensor]}).encode()
    refused_by_protocol(shared.post(where, content=body, headers={"Content-Type": kind}), 415)
    binary = {"Content-Type": "application/octet-stream"}
    refused_by_protocol(shared.post(where, content=body, headers=binary), 415)
    for fine in (
        {"Content-Type": "application/json"},
        {"Content-Type": "Application/JSON; charset=utf-8"},
        {**binary, "Inference-Header-Content-Length": str(len(body))},
        {},  # as Triton's client
    ):
        assert shared.post(where, content=body, headers=fine).status_code == 200
