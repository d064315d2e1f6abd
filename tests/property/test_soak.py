"""The soak, shortened. `python -m streamgp_lab.checks.soak --updates 100000` is the whole of it."""

import numpy as np
import pytest

from streamgp_lab.checks import soak


@pytest.mark.filterwarnings("ignore::streamgp.errors.EpochWarning")  # some units are of 1e9
def test_nothing_breaks():
    made, _, failures = soak.run(1, names=["real"], mixtures=0, updates=80)
    assert not failures
    assert made == 80


def test_a_failure_is_told_so_that_it_can_be_repeated(monkeypatch, capsys):
    def broken(*_):
        raise FloatingPointError("not a number")

    monkeypatch.setattr(soak, "_update", broken)
    made, _, failures = soak.run(5, names=["real"], mixtures=0, updates=3)
    assert made == len(failures) == 3
    told = capsys.readouterr().err
    assert "not a number" in told
    assert "--seed 5 --only 0 2" in told
    assert str(next(iter(failures[2].batch))) in told


def test_a_life_is_the_same_every_time(monkeypatch):
    batches = []
    monkeypatch.setattr(soak, "_update", lambda model, batch, generator: batches.append(batch))
    monkeypatch.setattr(soak, "_check", lambda model: None)
    monkeypatch.setattr(soak, "_check_predictions", lambda *_, **__: None)
    kind = soak.kinds(2, ["real", "class"], mixtures=1)[2]
    steps = [len(list(soak.live(kind, (2, 2, life), lambda *_: None))) for life in (7, 7, 8)]
    first, again, other = np.split(np.asarray(batches), np.cumsum(steps)[:-1])
    assert all(_same(*pair) for pair in zip(first, again, strict=True))
    assert not _same(first[0], other[0])


def _same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(a, b) for name in one for a, b in zip(one[name], other[name], strict=True)
    )
