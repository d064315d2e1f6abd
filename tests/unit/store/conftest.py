import uuid

import pytest
from tests import postgres

import streamgp as sgp


@pytest.fixture(scope="session")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if postgres.programs() is None:
        pytest.skip("there is no PostgreSQL server on this machine: `make test-postgres` gets one")
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A path or a URL of a store that does not exist yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "stream.db")
        return
    import psycopg

    url, name = request.getfixturevalue("server"), f"s{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    yield f"{url}&options=-csearch_path%3D{name}"


@pytest.fixture
def store(where):
    with sgp.Store(where) as made:
        yield made
