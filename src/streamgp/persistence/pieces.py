"""A model in pieces, for places that can replace a part of it: most of a long past never changes.

A model is a head and, if its past is kept as rows, one piece per block of rows. No block is ever
changed, so an update leaves all pieces but the last one or two as they were. A piece is known by
its digest. The head has all the rest, and a digest of the list of pieces.
"""

import dataclasses
import functools
import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from streamgp.errors import FileError, problem
from streamgp.inference.dense.state import DenseState
from streamgp.inference.kept import Kept
from streamgp.inference.over_time.state import RowState
from streamgp.persistence.container import Document, Tensors, seal, unseal
from streamgp.persistence.contents import (
    Contents,
    build,
    check,
    decoded,
    encoded,
    fitting,
    pack,
    writing,
)
from streamgp.persistence.requirements import require
from streamgp.persistence.values import decode, encode

_BLOCK, _PLACE, _LIST = "block", "place", "pieces"  # what a piece has, and a head beside a file


class Label(NamedTuple):
    """What is to be known of a piece without its bytes.

    Attributes:
        place: Pieces of a model are in the order of these numbers, no two of which are equal.
        digest: The SHA-256 digest of its bytes.
        size: The number of its bytes.
    """

    place: float
    digest: bytes
    size: int


class Piece:
    """A block of rows as bytes, which are made when somebody asks for them."""

    def __init__(self, block: Kept, place: float):
        self._block, self._place = block, place

    @functools.cached_property
    def _encoded(self) -> tuple[Document, Tensors]:
        tensors: Tensors = {}
        # Arrays are named by the place, so that those of all pieces may be held together.
        return encode(self._block, repr(self._place), tensors), tensors

    @functools.cached_property
    def data(self) -> bytes:
        """The bytes; equal blocks have equal ones."""
        item, tensors = self._encoded
        return seal({_BLOCK: item, _PLACE: self._place}, tensors)

    def read_back(self) -> Kept:
        """The block as it will be read, or itself if it has been checked."""
        return self._block if self._block in _LABELS else decode(*self._encoded)

    @property
    def label(self) -> Label:
        """Where it goes and what it is."""
        label = _LABELS.get(self._block)
        if label is None:
            label = _label(self._place, self.data)
            _LABELS[self._block] = label
        return label


class Pieces(NamedTuple):
    """A model in pieces.

    Attributes:
        head: Everything but the blocks of rows, as bytes.
        pieces: The blocks, in the order of time; none of a model that has none.
        labels: What they are.
    """

    head: bytes
    pieces: tuple[Piece, ...] = ()
    labels: tuple[Label, ...] = ()

    @property
    def size(self) -> int:
        """The number of all bytes."""
        return len(self.head) + sum(label.size for label in self.labels)


# Of blocks that were taken apart or put together before. They have been checked.
_LABELS: WeakKeyDictionary[Kept, Label] = WeakKeyDictionary()


def take_apart(whole: Contents) -> Pieces:
    """A model in pieces. What could not be read again is not written.

    The work is that of the pieces that were not there the last time, and a little per piece.
    """
    state = whole.progress.state
    if not isinstance(state, RowState | DenseState):
        return Pieces(pack(*whole))
    pieces = tuple(map(Piece, state.blocks, _places(state)))
    with writing():
        contents, tensors = encoded(_with_blocks(whole, ()))
        again = tuple(piece.read_back() for piece in pieces)
        check(_with_blocks(build(contents, tensors), again), _LABELS)
    labels = tuple(piece.label for piece in pieces)
    contents[_LIST] = {"count": len(pieces), "digest": _digest(labels)}
    return Pieces(seal(contents, tensors), pieces, labels)


def put_together(head: bytes, pieces: Sequence[bytes]) -> Contents:
    """The model's parts from its head and its pieces, in order. No code is taken from them.

    Raises:
        FileError: If they are damaged, or not those of one model.
    """
    with fitting("a stored model", "Take another copy of it."):
        contents, tensors = unseal(head)
        listed = contents.pop(_LIST, None)
        if listed is None:
            require(not pieces, "no pieces of a model that is whole without them")
            return decoded(contents, tensors)
        items, labels = [], []
        for data in pieces:
            label, item, arrays = _opened_piece(data)
            items.append(item)
            labels.append(label)
            tensors |= arrays
        if listed != {"count": len(labels), "digest": _digest(labels)}:
            raise _not_those(listed["count"], len(labels))
        contents["progress"]["fields"]["state"]["fields"]["blocks"] = {"tuple": items}
        whole = decoded(contents, tensors)
        state = whole.progress.state
        if isinstance(state, RowState | DenseState):
            _LABELS.update(zip(state.blocks, labels, strict=True))
    return whole


def _with_blocks(whole: Contents, blocks: tuple[Kept, ...]) -> Contents:
    state: Any = whole.progress.state
    progress = dataclasses.replace(whole.progress, state=state.replace(blocks=blocks))
    return whole._replace(progress=progress)


def _opened_piece(data: bytes) -> tuple[Label, Document, Tensors]:
    """A piece as JSON and arrays."""
    contents, tensors = unseal(data)
    item = contents[_BLOCK]
    return _label(float(contents[_PLACE]), data), item, tensors


def _label(place: float, data: bytes) -> Label:
    return Label(place, hashlib.sha256(data).digest(), len(data))


def _places(state: RowState | DenseState) -> list[float]:
    """Where each block goes: over time, by the time at which it begins, else by its number."""
    if isinstance(state, RowState):
        return [float(block.time[0]) for block in state.blocks]
    return [float(number) for number in range(len(state.blocks))]


def _digest(labels: Iterable[Label]) -> str:
    """A digest of a list of pieces."""
    listed = b"".join(struct.pack("<d", label.place) + label.digest for label in labels)
    return hashlib.sha256(listed).hexdigest()


def _not_those(expected: int, got: int) -> FileError:
    return FileError(
        problem(
            f"the {expected} pieces that the model was stored in",
            f"{got} pieces that are not those",
            "Take another copy of it.",
        )
    )
