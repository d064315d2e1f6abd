"""A PostgreSQL server for the length of some tests, if its programs are on this machine."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path


def programs() -> Path | None:
    """The folder with the server's programs; None if there is none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(os.path.realpath(found)).parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return folders[-1].parent if folders else None


@contextlib.contextmanager
def server():
    """The URL of a new and empty database. It listens on a socket in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # paths of sockets must be short
    owner = _owner()
    if owner is not None:
        shutil.chown(folder, owner)
    data = folder / "data"
    options = f"-k {folder} -c listen_addresses= -c fsync=off"

    def call(name, *words):
        path = str(programs() / name)
        subprocess.run([path, *words], check=True, capture_output=True, user=owner, cwd=folder)

    try:
        call("initdb", "-D", str(data), "-U", "tester", "-A", "trust", "--no-sync")
        call("pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            call("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def _owner() -> str | None:
    """The server refuses to run as root."""
    if os.getuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return "nobody"
