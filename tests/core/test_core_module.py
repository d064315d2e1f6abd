"""The way of arrays into the compiled core."""

import threading

import numpy as np
import pytest

from streamgp import _core
from tests.core.worlds import World, regular


@pytest.fixture
def call():
    """The law of a short stream, and the columns of its rows."""
    law, columns, _ = World.of("default").core()._arguments(regular(12))
    return law, list(columns)


@pytest.mark.parametrize("function", [_core.evidence, _core.log_evidence, _core.smooth])
@pytest.mark.parametrize(
    "change",
    [
        lambda t: np.repeat(t, 2)[::2],
        lambda t: t.astype(np.float32),
        lambda t: t.astype(int),
        lambda t: t[:, None],
    ],
    ids=["strided", "float32", "integers", "a matrix"],
)
def test_arrays_are_neither_copied_nor_converted(call, function, change):
    law, columns = call
    function(law, *columns)
    with pytest.raises(TypeError, match="incompatible"):
        function(law, change(columns[0]), *columns[1:])


def test_no_rows_are_no_evidence(call):
    law, columns = call
    empty = [
        column[:0] if column is not None and len(column) == 12 else column for column in columns
    ]
    assert _core.log_evidence(law, *empty) == 0.0
    value, *gradient = _core.evidence(law, *empty)
    assert value == 0.0
    assert not any(np.any(own) for own in gradient)


def test_many_threads_get_the_same(call):
    """The lock of Python is released, and nothing is shared."""
    law, columns = call
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(_core.evidence(law, *columns)[1].tolist()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 8
