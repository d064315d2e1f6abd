"""Several threads and processes: no update is lost, and the process is left as it was."""

import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import streamgp as sgp
from streamgp.numerics.blas_threads import on_one_blas_thread

X = np.linspace(0, 6, 40)
FORKED = "ignore:os.fork:RuntimeWarning"  # of JAX, where another test has loaded it


# -- threads ---------------------------------------------------------------------------------------


def model_of(*batches):
    """A model whose end does not depend on the order of its batches."""
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.1), learning=None, inducing=sgp.Fixed(X[::4]), scale=False
    )
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda x: model.update(x, np.sin(x)), batches))
    return model


def test_updates_from_two_threads_all_count():
    model, together = model_of(*np.split(X, 10)), model_of(X)
    assert model.observations == {"y": len(X)}
    np.testing.assert_allclose(model.predict(X).mean, together.predict(X).mean, atol=1e-8)


def test_channels_may_be_added_and_predicted_while_another_thread_learns():
    model = sgp.ContinualGP(
        {"a": sgp.Gaussian()}, latents=2, learning=None, inducing=sgp.Fixed(X[::8])
    )
    model.update({"a": (X, np.sin(X))})

    def learn():
        for _ in range(5):
            model.update({"a": (X[:5], np.sin(X[:5]))})

    thread = threading.Thread(target=learn)
    thread.start()
    model.add_channel("b", sgp.Gaussian())
    while thread.is_alive():
        assert set(model.predict(X[:3])) == {"a", "b"}
    thread.join()
    assert model.observations == {"a": 65, "b": 0}


def test_models_of_several_threads_learn_what_each_would_alone():
    def learned(seed):
        y = np.sin(X) + 0.2 * np.random.default_rng(seed).normal(size=len(X))
        model = sgp.ContinualGP(sgp.Gaussian())
        model.update(X, y)
        return model.predict(X).mean

    alone = [learned(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        for got, wanted in zip(pool.map(learned, range(6)), alone, strict=True):
            np.testing.assert_array_equal(got, wanted)


# -- BLAS ------------------------------------------------------------------------------------------


def blas_threads():
    return {
        part["filepath"]: part["num_threads"]
        for part in threadpool_info()
        if part["user_api"] == "blas"
    }


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, "blas"):
        found = blas_threads()
        if set(found.values()) != {2}:
            pytest.skip("this BLAS has one thread only")
        yield found


class Call:
    """A call into the library that lasts until it is told to end."""

    def __init__(self):
        self._begun, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=on_one_blas_thread(self._wait))

    def _wait(self):
        self._begun.set()
        assert self._end.wait(30)

    def begin(self):
        self._thread.start()
        assert self._begun.wait(30)

    def end(self):
        self._end.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("first_to_end", [0, 1], ids=["first", "second"])
def test_blas_threads_are_put_back_by_the_last_of_two_calls(two_blas_threads, first_to_end):
    calls = Call(), Call()
    for call in calls:
        call.begin()
        assert set(blas_threads().values()) == {1}
    calls[first_to_end].end()
    assert set(blas_threads().values()) == {1}
    calls[1 - first_to_end].end()
    assert blas_threads() == two_blas_threads


def test_blas_threads_are_put_back_after_an_error(two_blas_threads):
    @on_one_blas_thread
    def fails():
        assert set(blas_threads().values()) == {1}
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert blas_threads() == two_blas_threads


def test_updates_and_predictions_run_on_one_blas_thread(two_blas_threads):
    during = []

    def watching(view):
        during.append(blas_threads())
        return view.x[::8]

    model = sgp.ContinualGP(sgp.Gaussian(), inducing=watching, learning=None)
    model.update(X, np.sin(X))
    assert blas_threads() == two_blas_threads
    model.predict(X)
    assert blas_threads() == two_blas_threads
    assert all(set(found.values()) == {1} for found in during)
    assert during


# -- processes -------------------------------------------------------------------------------------


def goes_on(data, connection):
    """In another process: update the model, predict, and tell."""
    model = sgp.from_bytes(data)
    model.update(X + 1, np.sin(X + 1))
    connection.send(np.stack([model.predict(X).mean, model.predict(X).std]))
    connection.close()


def in_a_process(method, data):
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=goes_on, args=(data, sender))
    process.start()
    sender.close()
    try:
        assert receiver.poll(120)
        found = receiver.recv()
    finally:
        process.join(30)
        if process.is_alive():
            process.kill()
    assert process.exitcode == 0
    return found


@pytest.mark.filterwarnings(FORKED)
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_other_processes_go_on_with_a_model(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    model = sgp.ContinualGP(sgp.Gaussian(), engine="dense")  # which goes on bit for bit
    model.update(X, np.sin(X))
    data = model.to_bytes()
    found = in_a_process(method, data)
    model.update(X + 1, np.sin(X + 1))
    wanted = np.stack([model.predict(X).mean, model.predict(X).std])
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings(FORKED)
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_during_a_call_can_learn():
    """The call of the other thread is not in the new process, nor can it hold anything up."""
    model = sgp.ContinualGP(sgp.Gaussian())
    model.update(X, np.sin(X))
    call = Call()
    call.begin()
    found = in_a_process("fork", model.to_bytes())
    call.end()
    assert np.isfinite(found).all()


PROGRAM = """
import sys, tempfile
import matplotlib
matplotlib.use("Agg")
import numpy as np
import streamgp as sgp

x = np.linspace(0, 6, 30)
model = sgp.ContinualGP(
    {"a": sgp.Gaussian(), "b": sgp.Poisson(), "c": sgp.Categorical(3)},
    latents=[sgp.RBF() + sgp.Linear(), sgp.Matern32() * sgp.Periodic()],
)
model.update({"a": (x, np.sin(x)), "b": (x, np.floor(x)), "c": (x, np.floor(x) % 3)})
model.update_many(x[:5] + 6, np.sin(x[:5]), ["a"] * 5)
model.refine()
prediction = model.predict(x)
prediction["a"].interval(), prediction["b"].quantile(0.1), prediction["c"].probabilities
prediction.sample(3, joint=True)
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/model.sgp")
    model = sgp.load(folder + "/model.sgp")
model.update({"a": (x + 6, np.sin(x))})
model.plot()
heavy = {"jax", "jaxlib", "tinygp", "equinox", "numpyro", "paramax"}
print("loaded:", sorted(heavy & set(sys.modules)))
"""


def test_jax_is_never_loaded_for_built_in_parts():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "loaded: []"


def _threads_in_child(queue):
    queue.put(blas_threads())


@pytest.mark.filterwarnings(FORKED)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_during_a_call_has_its_threads_back():
    before = blas_threads()
    context = multiprocessing.get_context("fork")

    @on_one_blas_thread
    def forked():
        queue = context.Queue()
        process = context.Process(target=_threads_in_child, args=(queue,))
        process.start()
        found = queue.get(timeout=30)
        process.join()
        return found

    with warnings.catch_warnings():  # of Python, where a process with threads is forked
        warnings.simplefilter("ignore", DeprecationWarning)
        assert forked() == before
