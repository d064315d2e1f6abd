"""A file that others write to, line by line, read as it grows.

A place in it is the file's inode, a number of bytes, and a digest of the bytes before it. The
digest tells whether a file is still the one that was read: it may have been rotated (renamed, with
a new file in its place), copied and truncated, or replaced.
"""

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

_TAIL = 1024  # bytes before a place that are compared
_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class Place:
    """How far a file has been read.

    Attributes:
        device: Of the file.
        inode: Of the file.
        offset: The number of bytes that were read.
        tail: A digest of the last of them.
        count: The number of lines that were read.
    """

    device: int
    inode: int
    offset: int
    tail: str
    count: int


class Lines(NamedTuple):
    """Lines that have come.

    Attributes:
        header: The file's first line, if files have headers.
        lines: Whole lines, those without content left out.
        numbers: Which line of the file each of them is, from 1 on.
        place: The place after them; None if there is no file yet.
        ended: Whether the file is over: the next lines are those of another one.
    """

    header: bytes
    lines: list[bytes]
    numbers: list[int]
    place: Place | None
    ended: bool


class Follower:
    """Reads the lines of a file as they come, and goes on with the file that replaces it.

    Only whole lines are read. A file that is renamed is read to its end before the new one begins.
    If a file ends in a line without a line break when it is replaced, that line is left out.

    Args:
        path: Of the file, which need not exist yet.
        place: Where to go on. A file that was renamed is looked for in the same folder.
        header: Whether the first line of each file is a header.

    Attributes:
        lost: Whether there was a place and its file is gone.
    """

    def __init__(self, path: str | os.PathLike[str], place: Place | None, *, header: bool):
        self._path, self._header = Path(path), header
        self._file = None if place is None else _found(self._path, place, header)
        self.lost = place is not None and self._file is None

    def read(self, most: int) -> Lines:
        """The lines that have come since the last call, all of one file.

        Args:
            most: The largest number of lines.
        """
        file = self._file = self._file or _begun(self._path, self._header)
        if file is None:
            return Lines(b"", [], [], None, False)
        if file.is_changed():  # perhaps there is a copy with lines that were not read
            copy = _found(self._path, file.place, self._header)
            if copy is None:
                return self._ended(file)
            file.close()
            file = self._file = copy
        lines = file.read(most)
        if not lines and self._is_replaced(file):
            lines = file.read(most)  # what came before it was replaced
            if not lines:
                return self._ended(file)
        numbers = [number for number, _ in lines]
        return Lines(file.header, [line for _, line in lines], numbers, file.place, False)

    def _is_replaced(self, file: "_File") -> bool:
        try:
            return not os.path.samestat(os.stat(self._path), file.status)
        except FileNotFoundError:  # between two files
            return False

    def _ended(self, file: "_File") -> Lines:
        """The end of a file; the place is the beginning of the next one."""
        self._file = _begun(self._path, self._header)
        place = file.place if self._file is None else self._file.place
        file.close()
        return Lines(file.header, [], [], place, True)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class _File:
    """A file that is open, and how far it has been read."""

    def __init__(self, stream: BinaryIO, has_header: bool):
        self._stream, self._has_header = stream, has_header
        self._offset, self._tail, self._count = 0, b"", 0
        self.header = b""

    @property
    def status(self) -> os.stat_result:
        return os.fstat(self._stream.fileno())

    @property
    def place(self) -> Place:
        status = self.status
        return Place(status.st_dev, status.st_ino, self._offset, _digest(self._tail), self._count)

    def close(self) -> None:
        self._stream.close()

    def is_changed(self) -> bool:
        """Whether what was read is no longer there."""
        return self._before(self._offset) != self._tail

    def is_at(self, place: Place) -> bool:
        """Go to a place of this file; False if it is not one."""
        tail = self._before(place.offset)
        if len(tail) < min(place.offset, _TAIL) or _digest(tail) != place.tail:
            return False
        self.read(0)  # the header
        self._offset, self._tail, self._count = place.offset, tail, place.count
        return True

    def _before(self, offset: int) -> bytes:
        begin = max(offset - _TAIL, 0)
        return self._at(begin, offset - begin)

    def _at(self, begin: int, size: int) -> bytes:
        self._stream.seek(begin)
        return self._stream.read(size)

    def read(self, most: int) -> list[tuple[int, bytes]]:
        """Whole lines from where it is and their numbers, and the header before the first."""
        found: list[tuple[int, bytes]] = []
        if self._has_header and not self._offset:
            self.header = b"".join(self._next_lines(1))
        if self.header or not self._has_header:
            while len(found) < most:
                lines = self._next_lines(most - len(found))
                if not lines:
                    break
                numbered = enumerate(lines, self._count - len(lines) + 1)
                found += [(number, line) for number, line in numbered if line.strip()]
        return found

    def _next_lines(self, most: int) -> list[bytes]:
        data = b""
        while b"\n" not in data:
            more = self._at(self._offset + len(data), _BLOCK)
            if not more:
                return []
            data += more
        *whole, _ = data.split(b"\n")
        lines = [line + b"\n" for line in whole[:most]]
        self._offset += sum(map(len, lines))
        self._count += len(lines)
        self._tail = self._before(self._offset)
        return lines


def _begun(path: Path, header: bool) -> _File | None:
    """The file from its beginning, if there is one."""
    try:
        return _File(open(path, "rb", buffering=0), header)
    except FileNotFoundError:
        return None


def _found(path: Path, place: Place, header: bool) -> _File | None:
    """The file of a place: the one with its inode, or else one with the same bytes before it."""
    for candidate in _candidates(path, place):
        file = _begun(candidate, header)
        if file is not None:
            if file.is_at(place):
                return file
            file.close()
    return None


def _candidates(path: Path, place: Place) -> list[Path]:
    same, named = [], []
    for each in (path, *sorted(path.parent.iterdir())):
        try:
            status = each.stat()
        except OSError:
            continue
        if not each.is_file():
            continue
        if (status.st_dev, status.st_ino) == (place.device, place.inode):
            same.append(each)
        elif place.offset and each.name.startswith(path.name):
            named.append(each)
    return same + named


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
