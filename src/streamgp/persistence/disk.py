"""Bytes on disk. A file is replaced as a whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path

from streamgp.errors import FileError, problem


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Put bytes into a file: at every moment it has the old ones or the new ones, all of them."""
    target = Path(os.path.realpath(path))  # of a link, the file that it leads to
    if not target.parent.is_dir():
        raise FileNotFoundError(
            problem(
                f"a folder that exists, for the file {target.name!r}",
                f"{str(target.parent)!r}, which does not",
                "Create the folder first.",
            )
        )
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def read(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes; what the system says of a missing or forbidden one is passed on."""
    if Path(path).is_dir():
        raise FileError(problem("a file", f"the directory {str(path)!r}", "Name a file in it."))
    return Path(path).read_bytes()
