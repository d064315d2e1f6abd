import numpy as np

import streamgp as sgp


def test_one_channel():
    model = sgp.ContinualGP(sgp.Gaussian())
    x = np.linspace(0, 6, 60)
    for part in np.split(x, 3):
        model.update(part, np.sin(part))
    assert np.max(np.abs(model.predict(x).mean - np.sin(x))) < 0.02
