"""Whatever bytes come, `from_bytes` gives a model or a FileError; no code of theirs is run."""

import copy
import json
import pickle

import numpy as np
import pytest
import safetensors.numpy
import tinygp

import streamgp as sgp
import streamgp.kernels.tinygp_adapter
from streamgp.data.axes import Axis
from streamgp.data.schema import Schema
from streamgp.online import lifecycle
from streamgp.online.drift import Watch
from streamgp.online.progress import Progress
from streamgp.persistence import container

X = np.linspace(0, 6, 8)


@pytest.fixture(scope="module")
def data() -> bytes:
    """A model with something of everything, without the cost of an update of it."""
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian(noise=sgp.fixed(0.1)), "b": sgp.Poisson()},
        latents=[
            sgp.RBF() + 0.5 * sgp.Matern32(2.0).on(0) + tinygp.kernels.ExpSquared(1.5),
            (sgp.Periodic(), 2),
        ],
        mixing={"b": np.ones((1, 3))},
        inducing=sgp.Fixed(X[:3]),
        mean={"a": sgp.Constant() + sgp.Trend(1, (0, 9)) + sgp.Events({"e": [(1, 2)]})},
        seasons=[sgp.Seasonal(3, harmonics=1)],
    )
    axes = (Axis("x"),)
    state = lifecycle.begin(model._specification, model.learner, X[:, None], {"a": X}, axes)
    seen = {"a": 8, "b": 0}
    watches = {"a": Watch(1, -0.5)}
    progress = Progress(seen, state, 1, 8, 6.0, watches=watches, schema=Schema(axes))
    model._version = model._version._replace(progress=progress)
    return model.to_bytes()


def outcome(data: bytes) -> str:
    """ "refused" or "loaded"; any other exception is the test's."""
    try:
        model = sgp.from_bytes(data)
    except sgp.FileError as error:
        return "refused" if str(error).startswith("expected ") else str(error)
    assert isinstance(model, sgp.ContinualGP)
    assert sgp.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    return "loaded"


def flipped(data: bytes, rng, begin: int, end: int) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed[rng.integers(begin, end)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def damaged(data: bytes, rng) -> bytes:
    """One of the ways in which bytes go wrong."""
    header = 8 + int.from_bytes(data[:8], "little")
    cut = int(rng.integers(len(data)))
    ways = [
        lambda: flipped(data, rng, 0, 16),
        lambda: flipped(data, rng, 8, header),
        lambda: flipped(data, rng, header, len(data)),
        lambda: data[:cut],
        lambda: data[cut:],
        lambda: data[:cut] + rng.bytes(int(rng.integers(1, 50))) + data[cut:],
        lambda: data[:cut] + data[cut + int(rng.integers(1, 50)) :],
        lambda: rng.bytes(int(rng.integers(200))),
        lambda: data[:8] + rng.bytes(len(data) - 8),
        lambda: safetensors.numpy.save({"w": rng.normal(size=3)}, {"streamgp": rng.bytes(9).hex()}),
    ]
    return ways[rng.integers(len(ways))]()


def test_a_thousand_damaged_files_are_refused(data):
    assert outcome(data) == "loaded"
    rng = np.random.default_rng(0)
    cases = [damaged(data, rng) for _ in range(1000)]
    outcomes = [outcome(case) for case in cases if case != data]
    assert set(outcomes) == {"refused"}
    assert len(outcomes) > 990


# -- files that are whole, and wrong ---------------------------------------------------------------

ODD = [
    *(None, True, 0, -1, 10**30, 1.5, "", "x", "streamgp.Gaussian", [], [1], {}, {"class": "os"}),
    *({"float": "nan"}, {"float": "x"}, {"tuple": []}, {"tuple": 3}, {"dict": [[1]]}, {"dict": []}),
    *(
        {"array": "none", "kind": "numpy"},
        {"array": [], "kind": "numpy"},
        {"function": "os.system"},
    ),
    {"class": "streamgp.Gaussian", "fields": {"noise": -1.0}},
    {"class": "streamgp.Gaussian", "fields": {}},
    {"class": "streamgp.RBF", "fields": {"lengthscale": 1.0, "variance": "x"}},
    {"class": "streamgp.Likelihood", "fields": {}},
    {"class": "streamgp.Adaptive", "fields": {"tolerance": 2.0, "budget": 1, "moves": None}},
    {"class": "streamgp.VEM", "fields": {"rounds": "1", "evaluations": 1, "every": 1}},
    {"class": "streamgp.Frozen", "fields": {"number": 0.5}},
    {"class": "tinygp.Matern32", "fields": {"scale": 1.0}},
    {"class": "paramax.NonTrainable", "fields": {"tree": 1.0}},
]


def places(value, path=()):
    """The paths to every value in a document."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def forged(data: bytes, rng) -> bytes:
    """A file with one thing in it replaced, and a digest that says that all is well."""
    document, tensors = container._parts(data)
    contents = document["contents"]
    if rng.random() < 0.3:
        name = str(rng.choice(sorted(tensors)))
        tensors[name] = changed_tensor(tensors[name], rng)
    else:
        everywhere = [path for path in places(contents) if path]
        path = everywhere[rng.integers(len(everywhere))]
        parent = contents
        for key in path[:-1]:
            parent = parent[key]
        odd = copy.deepcopy(ODD[rng.integers(len(ODD))])
        if rng.random() < 0.2:
            del parent[path[-1]]
        else:
            parent[path[-1]] = odd
    return container.seal(contents, tensors)


def changed_tensor(tensor, rng):
    ways = [
        lambda: tensor[..., None],
        lambda: np.concatenate([tensor.ravel(), tensor.ravel()]),
        lambda: tensor.astype(np.float32),
        lambda: tensor.astype(np.int8),
        lambda: np.full_like(tensor, True if tensor.dtype == bool else np.nan),
        lambda: np.full_like(tensor, False if tensor.dtype == bool else np.inf),
        lambda: -np.ones_like(tensor, dtype=float),
        lambda: tensor[:0] if tensor.ndim else tensor[None],
    ]
    return np.asarray(ways[rng.integers(len(ways))]())


def test_forged_files_are_refused_or_are_models(data):
    rng = np.random.default_rng(1)
    outcomes = [outcome(forged(data, rng)) for _ in range(500)]
    assert outcomes.count("refused") > 400


def test_a_digest_that_is_no_text_is_refused(data):
    odd = data.replace(container._parts(data)[0]["digest"].encode(), rb"\\ud800" + b"0" * 57, 1)
    assert outcome(odd) == "refused"


def of_the_state(tensors) -> list[str]:
    names = [name for name in tensors if name.startswith("progress/state")]
    assert len(names) > 20
    return names


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_state_that_is_not_finite_is_refused(bad, data):
    document, tensors = container._parts(data)
    for name in of_the_state(tensors):
        if tensors[name].dtype == float and tensors[name].size:
            worse = tensors[name].copy()
            worse.flat[0] = bad
            assert outcome(container.seal(document["contents"], {**tensors, name: worse})) == (
                "refused"
            )


def test_every_shape_and_type_in_a_state_is_checked(data):
    document, tensors = container._parts(data)
    for name in of_the_state(tensors):
        own = tensors[name]
        other = np.float64 if own.dtype == np.int64 else np.int64
        for worse in (own[None], own.astype(np.float32), own.astype(other)):
            sealed = container.seal(document["contents"], {**tensors, name: worse})
            with pytest.raises(sgp.FileError, match="fit together"):
                sgp.from_bytes(sealed)


def test_counts_below_zero_are_refused(data):
    document, tensors = container._parts(data)
    less = {**tensors, "progress/state/heard": tensors["progress/state/heard"] - 100}
    assert outcome(container.seal(document["contents"], less)) == "refused"


def foreign():
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    weights = {"w": np.zeros(3)}
    twice = json.dumps({"format": "streamgp", "version": True})
    return {
        "nothing": b"",
        "text": b"model: yes\n" * 40,
        "a pickle": pickle.dumps(Evil()),
        "a NumPy file": np.lib.format.magic(1, 0) + b"x" * 100,
        "other tensors": safetensors.numpy.save(weights),
        "other metadata": safetensors.numpy.save(weights, {"format": "pt"}),
        "no document": safetensors.numpy.save(weights, {"streamgp": "?"}),
        "a list": safetensors.numpy.save(weights, {"streamgp": "[]"}),
        "another format": safetensors.numpy.save(weights, {"streamgp": '{"format": "gp"}'}),
        "no version": safetensors.numpy.save(weights, {"streamgp": twice}),
        "deep": safetensors.numpy.save(weights, {"streamgp": "[" * 10**5}),
    }


@pytest.mark.parametrize("name", foreign())
def test_what_is_no_model_is_refused(name, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(foreign()[name])
    with pytest.raises(sgp.FileError, match=r"^expected .* wrote, whole; got .*\. Take another"):
        sgp.load(path)


def test_a_directory_and_a_path_for_bytes_are_refused(tmp_path):
    with pytest.raises(sgp.FileError, match="expected a file; got the directory"):
        sgp.load(tmp_path)
    with pytest.raises(sgp.FileError, match=r"expected bytes; got a str\. Use `streamgp.load`"):
        sgp.from_bytes(str(tmp_path))
