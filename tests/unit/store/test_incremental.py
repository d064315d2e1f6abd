"""Long streams in a store: what is written does not grow with what is there."""

import dataclasses

import numpy as np
import pytest

import streamgp as sgp
from streamgp import persistence
from streamgp.persistence import container

SPACING = 0.2  # of rows


def chain(times, channels=1, shape=np.sin):
    """A model with rows of each channel at that many times."""
    families = {"ab"[d]: sgp.Gaussian(0.3) for d in range(channels)}
    kernel = sgp.Matern32(1.0, 1.0)
    model = sgp.ContinualGP(families, latents=kernel, learning=None, scale=False)
    x = np.arange(times) * SPACING + 0.1
    for part in np.array_split(x, max(times // 2000, 1)):
        model.update({name: (part, shape(part)) for name in families})
    return model


def further(model, rows=2):
    """A small batch after the latest input."""
    x = model._version.progress.latest + SPACING * np.arange(1, rows + 1)
    model.update({name: (x, np.cos(x)) for name in model.channels})


def apart(model):
    return persistence.take_apart(
        persistence.Contents(*model._version, model.notes, model._bookkeeping)
    )


def together(head, pieces):
    return sgp.ContinualGP._of(persistence.put_together(head, pieces))


def written(store, path, model):
    """The bytes that go to disk when the model is stored, by the size of the log."""
    with store._backend.writing() as session:
        session.run("SELECT 1")
    connection = store._backend._connect()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    store.put("sensor", model)
    return path.with_name(f"{path.name}-wal").stat().st_size


def test_a_chain_comes_back_as_it_was(store):
    model = chain(600, channels=2)
    assert len(model.state.blocks) > 3
    for _ in range(5):
        further(model, 30)
        store.put("sensor", model)
        again = store.get("sensor")
        assert again.to_bytes() == model.to_bytes()
        model = again
    assert store.info("sensor").size == apart(model).size


def test_rows_over_any_inputs_come_back_as_they_were(store):
    generator = np.random.default_rng(0)
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None, keep=None)
    known = set()
    for rows in (600, 30, 30):
        x = generator.normal(size=(rows, 2))
        model.update(x, x[:, 0])
        store.put("sensor", model)
        again = store.get("sensor")
        assert again.to_bytes() == model.to_bytes()
        assert store.info("sensor").size == apart(model).size
        labels = apart(model).labels
        assert len(labels) == 3
        assert not known or len(known.intersection(labels)) == 2  # full blocks stay as they are
        known, model = set(labels), again


def test_what_is_written_does_not_grow_with_the_past(tmp_path):
    path = tmp_path / "stream.db"
    found = []
    for times in (600, 600 + 44 * 256):  # the last block is as full in both
        model = chain(times)
        with sgp.Store(path) as store:
            whole = written(store, path, model)
            saves = []
            for _ in range(70):  # so many that a block is filled
                further(model, 4)
                saves.append(written(store, path, model))
            assert store.get("sensor").to_bytes() == model.to_bytes()
            found.append((whole, max(saves), np.mean(saves)))
    (_, most, usual), (whole, most_later, usual_later) = found
    # SQLite's tree of pieces is deeper by a page or two; a save writes ten.
    assert usual_later < usual + 2 * 4096
    assert most_later < 1.2 * most
    assert usual_later < 0.1 * whole


def test_only_new_pieces_are_handed_to_the_database(store, monkeypatch):
    """SQLite itself does not write pages again that stay the same; others do."""
    with store._backend.writing() as session:
        kind = type(session)
    original, handed = kind.run_each, []

    def counting(self, statement, rows):
        rows = list(rows)
        if "INSERT INTO streamgp_pieces" in statement:
            handed.append(len(rows))
        original(self, statement, rows)

    monkeypatch.setattr(kind, "run_each", counting)
    model = chain(1500)
    for _ in range(4):
        store.put("sensor", model)
        further(model)
    assert handed[0] == len(model.state.blocks)
    assert max(handed[1:]) <= 2


def test_another_process_that_goes_on_writes_little_too(tmp_path):
    path = tmp_path / "stream.db"
    with sgp.Store(path) as store:
        store.put("sensor", chain(6000))
    with sgp.Store(path) as store:  # which knows of no pieces, as another process would not
        model = store.get("sensor")
        further(model)
        assert written(store, path, model) < 0.2 * len(model.to_bytes())


def test_pieces_that_are_no_longer_used_are_removed(store):
    long, short = chain(1000), chain(300)
    dense = sgp.ContinualGP(sgp.Gaussian(), learning=None, engine="dense")
    dense.update(np.arange(4.0), np.zeros(4))

    def count():
        with store._backend.reading() as session:
            return session.run("SELECT count(*) FROM streamgp_pieces")[0][0]

    for model in (long, short, long, dense, short):
        store.put("sensor", model)
        assert count() == len(apart(model).pieces)
        assert store.get("sensor").to_bytes() == model.to_bytes()
    store.put("other", long)
    store.delete("sensor")
    assert count() == len(apart(long).pieces)
    assert store.get("other").to_bytes() == long.to_bytes()


def test_late_data_rewrite_the_blocks_that_they_fall_into(store):
    model = chain(1500)
    store.put("sensor", model)
    model.update({"a": (np.array([20.03, 150.07]), np.zeros(2))})
    store.put("sensor", model)
    assert store.get("sensor").to_bytes() == model.to_bytes()


def test_a_store_that_another_has_changed_is_not_taken_for_ours(where):
    """Which pieces are there is remembered. That must not outlive a change by somebody else."""
    model, other = chain(700), chain(500)
    with sgp.Store(where) as mine, sgp.Store(where) as theirs:
        mine.put("sensor", model)
        theirs.put("sensor", other)
        further(model)
        mine.put("sensor", model)
        assert theirs.get("sensor").to_bytes() == model.to_bytes()
        theirs.delete("sensor")
        further(model)
        mine.put("sensor", model)
        assert theirs.get("sensor").to_bytes() == model.to_bytes()


def test_a_model_that_keeps_no_rows_is_its_file():
    model = sgp.ContinualGP(sgp.Gaussian(), keep=0)
    model.update(np.arange(5.0), np.zeros(5))
    head, pieces, _ = apart(model)
    assert head == model.to_bytes()
    assert pieces == ()


def test_damage_is_told_from_data():
    model = chain(600)
    head, pieces, _ = apart(model)
    data = [piece.data for piece in pieces]
    assert together(head, data).to_bytes() == model.to_bytes()
    other = [piece.data for piece in apart(chain(600, shape=np.cos)).pieces]
    assert len(other) == len(data)
    bent = bytearray(data[1])
    bent[-9] ^= 1
    for bad in (data[:-1], data[::-1], [], data + data[-1:], other, [data[0], bytes(bent)]):
        with pytest.raises(sgp.FileError):
            together(head, bad)
    for bad in (head[:-1], b"", data[0]):
        with pytest.raises(sgp.FileError):
            together(bad, data)
    with pytest.raises(sgp.FileError):
        sgp.from_bytes(head)
    with pytest.raises(sgp.FileError):
        together(model.to_bytes(), data)


def test_pieces_are_of_the_format_that_is_read(monkeypatch):
    head, pieces, _ = apart(chain(300))
    data = [piece.data for piece in pieces]
    contents, tensors = container.unseal(data[-1])
    monkeypatch.setattr(container, "FORMAT", 2)
    data[-1] = container.seal(contents, tensors)
    monkeypatch.undo()
    with pytest.raises(sgp.FileError, match="a file of format 4"):
        together(head, data)


def test_what_could_not_be_read_is_not_written(store):
    model = chain(300)
    store.put("sensor", model)
    progress = model._version.progress
    first, *rest = progress.state.blocks
    for bad in (
        {"y": np.full_like(first.y, np.nan)},
        {"x": first.x[::-1].copy()},
        {"linear": np.zeros((first.size, 1))},
        {"count": first.count[:-1]},
    ):
        block = dataclasses.replace(first, **bad)
        state = progress.state.replace(blocks=(block, *rest))
        broken = sgp.from_bytes(model.to_bytes())
        broken._version = model._version._replace(
            progress=type(progress)(**{**vars(progress), "state": state})
        )
        with pytest.raises(sgp.FileError, match="fit together"):
            store.put("sensor", broken)
    assert store.get("sensor").to_bytes() == model.to_bytes()
