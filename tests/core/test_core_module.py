"""The way of arrays into the compiled core, and of numbers and errors out of it."""

import numpy as np
import pytest

from streamgp import _core


def test_vectors_go_in_and_a_number_comes_out():
    assert _core.inner(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])) == 32.0
    assert _core.inner(np.empty(0), np.empty(0)) == 0.0


def test_an_error_of_the_core_is_an_exception():
    with pytest.raises(ValueError, match="the same length"):
        _core.inner(np.ones(2), np.ones(3))


@pytest.mark.parametrize(
    "other",
    [np.ones(6)[::2], np.ones(3, dtype=np.float32), np.ones(3, dtype=int), np.ones((3, 1))],
    ids=["strided", "float32", "integers", "a matrix"],
)
def test_arrays_are_neither_copied_nor_converted(other):
    with pytest.raises(TypeError, match="incompatible"):
        _core.inner(np.ones(3), other)
