"""One model, several threads: no update is lost, and the process is left as it was."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_info

import streamgp as sgp
from streamgp.numerics.precision import double_precision

X = np.linspace(0, 6, 40)


def test_updates_from_two_threads_all_count():
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=sgp.fixed(0.1)), learning=None, inducing=sgp.Fixed(X)
    )
    batches = np.split(X, 10)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda x: model.update(x, np.sin(x)), batches))
    assert model.observations == {"y": len(X)}
    np.testing.assert_allclose(model.predict(X).mean, np.sin(X), atol=0.05)


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


def lapack_threads():
    return sorted(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def test_the_number_of_lapack_threads_is_put_back_when_calls_overlap():
    before = lapack_threads()
    # The first to come in leaves before the second: each putting back what it found is wrong.
    entered, leave = threading.Event(), threading.Event()

    @double_precision
    def late():
        entered.set()
        leave.wait(10)

    outer = double_precision(lambda: (thread.start(), entered.wait(10)))
    thread = threading.Thread(target=late)
    outer()
    leave.set()
    thread.join()
    assert lapack_threads() == before
