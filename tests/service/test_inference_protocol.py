"""The Open Inference Protocol, with Triton's own client."""

import warnings

import numpy as np
import pytest

from tests.service.running import rows
from tests.service.test_routes import INPUTS, is_problem, local, made

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    triton = pytest.importorskip("tritonclient.http", reason="needs tritonclient[http]")


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
    is_problem(shared.post("/v2/models/tensors/infer", json=body), 422)
