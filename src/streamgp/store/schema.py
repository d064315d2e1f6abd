"""The tables of a store."""

from streamgp.errors import FileError, StoreError, problem
from streamgp.store.backend import AbstractBackend, AbstractSession
from streamgp.version import __version__

VERSION = 2
MARK = "streamgp_store"  # the table by which a store is known
ABSENT = 0  # the version of a model that is not there
NOBODY = ""  # in place of the key of a model, for what belongs to none

_TABLES = f"""
CREATE TABLE IF NOT EXISTS {MARK} (version {{integer}} NOT NULL, streamgp {{text}} NOT NULL);
CREATE TABLE IF NOT EXISTS streamgp_models (
    key {{text}} PRIMARY KEY, version {{integer}} NOT NULL, changed {{real}} NOT NULL,
    updates {{integer}} NOT NULL, observations {{text}} NOT NULL, size {{integer}} NOT NULL,
    head {{bytes}} NOT NULL
);
CREATE TABLE IF NOT EXISTS streamgp_pieces (
    key {{text}} NOT NULL, place {{real}} NOT NULL, digest {{bytes}} NOT NULL,
    data {{bytes}} NOT NULL, PRIMARY KEY (key, place)
);
CREATE TABLE IF NOT EXISTS streamgp_offsets (
    model {{text}} NOT NULL, source {{text}} NOT NULL, value {{text}} NOT NULL,
    PRIMARY KEY (model, source)
);
CREATE TABLE IF NOT EXISTS streamgp_answers (
    model {{text}} NOT NULL, request {{text}} NOT NULL, made {{real}} NOT NULL,
    answer {{bytes}} NOT NULL, PRIMARY KEY (model, request)
);
CREATE INDEX IF NOT EXISTS streamgp_answers_made ON streamgp_answers (made)
"""
_MADE = f"SELECT version, streamgp FROM {MARK}"


def set_up(backend: AbstractBackend) -> None:
    """Make the tables if they are not there. Those that are there are opened without waiting.

    Raises:
        FileError: If they are those of another version.
    """
    try:
        with backend.reading() as session:
            rows = session.run(_MADE)
    except StoreError:  # there is no such table
        rows = []
    if not rows:
        with backend.writing() as session:
            for statement in _TABLES.format(**backend.types).split(";"):
                session.run(statement)
            rows = session.run(_MADE)  # another process may have been faster
            if not rows:
                rows = [(VERSION, __version__)]
                session.run(f"INSERT INTO {MARK} VALUES (?, ?)", rows[0])
    version, library = rows[0]
    if version != VERSION:
        raise FileError(
            problem(
                f"a store of version {VERSION}, which streamgp {__version__} reads",
                f"one of version {version}, written by streamgp {library}",
                "Use it with that version of streamgp, or name another store and import the "
                "models' files there.",
            )
        )


def in_chunks(
    session: AbstractSession,
    statement: str,
    keys: list[str],
    first: tuple[str, ...] = (),
    size: int = 500,
) -> list[tuple]:
    """The rows of a query that ends in `key IN`, for any number of keys.

    Args:
        session: One that may read.
        statement: The query.
        keys: What may follow `IN`.
        first: The values that come before those.
        size: How many keys one statement has.
    """
    found: list[tuple] = []
    for begin in range(0, len(keys), size):
        chunk = keys[begin : begin + size]
        found += session.run(f"{statement} ({', '.join('?' * len(chunk))})", (*first, *chunk))
    return found
