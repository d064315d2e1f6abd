"""What may be wrong with a database, and who else may be using it."""

import os
import pickle
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import streamgp as sgp
from streamgp.store import schema


def made():
    model = sgp.ContinualGP(sgp.Gaussian(), learning=None, engine="dense")
    model.update(np.linspace(0, 5, 4), np.ones(4))
    return model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stream.db"


# -- files ---------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_refused(path):
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(sgp.FileError, match="that is whole; got SQLite's"):
        sgp.Store(path)
    assert path.read_bytes().startswith(b"no database")


def test_a_database_of_something_else_is_left_alone(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(sgp.FileError, match="a database of something else"):
        sgp.Store(path)
    assert path.read_bytes() == before


def test_paths_that_cannot_be_used_are_said_so(tmp_path, path):
    with pytest.raises(sgp.FileError, match="the directory"):
        sgp.Store(tmp_path)
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        sgp.Store(tmp_path / "nowhere" / "stream.db")
    with pytest.raises(FileNotFoundError, match="a store that exists"):
        sgp.Store(path, create=False)
    assert not path.exists()
    sgp.Store(path).close()
    sgp.Store(path, create=False).close()


def test_a_damaged_database_is_told_from_data(path):
    with sgp.Store(path) as store:
        for i in range(20):
            store.put(str(i), made())
    whole = bytearray(path.read_bytes())
    whole[4096:] = bytes(len(whole) - 4096)
    path.write_bytes(bytes(whole))
    with pytest.raises(sgp.FileError), sgp.Store(path) as store:
        store.get("7")


@pytest.mark.parametrize("version", [1, 99])
def test_a_store_of_another_version_is_refused(where, version):
    with sgp.Store(where) as store, store._backend.writing() as session:
        session.run(f"UPDATE {schema.MARK} SET version = {version}, streamgp = '9.9'")
    with pytest.raises(sgp.FileError, match=rf"of version {version}, written by streamgp 9\.9"):
        sgp.Store(where)


def test_a_store_is_opened_while_another_writes(where):
    with sgp.Store(where) as store:
        store.put("a", made())
        with store._backend.writing() as session:
            session.run("DELETE FROM streamgp_models")
            with sgp.Store(where) as other:
                assert other.keys() == ["a"]


class Trap:
    def __reduce__(self):
        return (os.abort, ())


BAD = {
    "pickle": ("head", pickle.dumps(Trap())),
    "empty": ("head", b""),
    "another": ("head", b"\x08\0\0\0\0\0\0\0{}      "),
    "counts": ("observations", "import os"),
    "counts that nest": ("observations", "[" * 100_000),
    "time": ("changed", 1e300),
}


@pytest.mark.parametrize("name", BAD)
def test_whatever_is_in_the_database_nothing_of_it_is_run(store, name):
    column, value = BAD[name]
    store.put("good", made())
    store.put("bad", made())
    with store._backend.writing() as session:
        session.run(f"UPDATE streamgp_models SET {column} = ? WHERE key = 'bad'", (value,))
    with pytest.raises(sgp.FileError):
        store.get("bad")
    assert store.get("good").to_bytes() == made().to_bytes()
    store.put("bad", made())
    assert store.get("bad").to_bytes() == made().to_bytes()


def test_a_disk_that_is_full_is_said_so_and_nothing_is_lost(path):
    with sgp.Store(path) as store:
        store.put("a", made())
        connection = store._backend._pool.take()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        store._backend._pool.give_back(connection)

        def fill():
            with store.transaction() as change:
                change.set_offset("s", 1)
                for i in range(20):
                    change.put(f"more {i}", made())

        with pytest.raises(sgp.StoreError, match="full"):
            fill()
        assert store.keys() == ["a"]
        assert store.offset("s") is None


# -- several at once -----------------------------------------------------------------------------

COUNT = """
import contextlib, sys
import streamgp as sgp
with sgp.Store(sys.argv[1]) as store:
    model = sgp.ContinualGP(sgp.Gaussian())
    model.notes["n"] = 0
    with contextlib.suppress(sgp.StaleError):
        store.put("count", model, version=0)
    for i in range(8):
        while True:
            stored = store.fetch("count")
            stored.model.notes["n"] += 1
            try:
                with store.transaction() as change:
                    change.put("count", stored.model, version=stored.info.version)
                    change.record(f"{sys.argv[2]} {i}", b"done")
                break
            except sgp.StaleError:
                pass
"""


def test_processes_that_begin_a_store_together_lose_no_change(where):
    words = [sys.executable, "-c", COUNT, where]
    workers = [subprocess.Popen([*words, name]) for name in "ab"]
    assert [worker.wait() for worker in workers] == [0, 0]
    with sgp.Store(where) as store:
        assert store.get("count").notes["n"] == 16
        assert store.answer("b 7") == b"done"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_forked_process_has_connections_of_its_own(where):
    with sgp.Store(where) as store:
        store.put("a", made())
        child = os.fork()
        if child == 0:
            store.put("b", made())
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert store.keys() == ["a", "b"]


# -- servers -------------------------------------------------------------------------------------


def test_a_connection_that_broke_is_replaced(server):
    import psycopg

    with sgp.Store(server) as store:
        store.put("a", made())
        with psycopg.connect(server, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        assert store.keys() == ["a"]


def test_a_server_that_is_not_there_is_said_so_without_the_password(tmp_path):
    pytest.importorskip("psycopg")
    url = f"postgresql://me:secret@/nothing?host={tmp_path}"
    with pytest.raises(sgp.StoreError, match="Check the server") as caught:
        sgp.Store(url)
    assert "secret" not in str(caught.value)
