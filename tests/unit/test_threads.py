"""One model, several threads: no update is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import streamgp as sgp

X = np.linspace(0, 6, 40)


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
