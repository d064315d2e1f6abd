"""A model in pieces, for places that can replace a part of it: most of a long chain never changes.

A model is a head and, if its past is kept as a chain, one piece per segment. No segment is ever
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
from streamgp.inference.chain.segments import Segment
from streamgp.inference.chain.state import ChainState
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

_SEGMENT, _LIST = "segment", "pieces"  # what a piece has, and what a head has beside a file


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
    """A segment of a chain as bytes, which are made when somebody asks for them."""

    def __init__(self, segment: Segment):
        self._segment = segment

    @functools.cached_property
    def _encoded(self) -> tuple[Document, Tensors]:
        tensors: Tensors = {}
        # Arrays are named by the place, so that those of all pieces may be held together.
        name = repr(_place(self._segment))
        return encode(self._segment, name, tensors), tensors

    @functools.cached_property
    def data(self) -> bytes:
        """The bytes; equal segments have equal ones."""
        item, tensors = self._encoded
        return seal({_SEGMENT: item}, tensors)

    def read_back(self) -> Segment:
        """The segment as it will be read, or itself if it has been checked."""
        return self._segment if self._segment in _LABELS else decode(*self._encoded)

    @property
    def label(self) -> Label:
        """Where it goes and what it is."""
        label = _LABELS.get(self._segment)
        if label is None:
            label = _label(_place(self._segment), self.data)
            _LABELS[self._segment] = label
        return label


class Pieces(NamedTuple):
    """A model in pieces.

    Attributes:
        head: Everything but the segments of a chain, as bytes.
        pieces: The segments, in the order of time; none of a model without a chain.
        labels: What they are.
    """

    head: bytes
    pieces: tuple[Piece, ...] = ()
    labels: tuple[Label, ...] = ()

    @property
    def size(self) -> int:
        """The number of all bytes."""
        return len(self.head) + sum(label.size for label in self.labels)


# Of segments that were taken apart or put together before. They have been checked.
_LABELS: WeakKeyDictionary[Segment, Label] = WeakKeyDictionary()


def take_apart(whole: Contents) -> Pieces:
    """A model in pieces. What could not be read again is not written.

    The work is that of the pieces that were not there the last time, and a little per piece.
    """
    state = whole.progress.state
    if not isinstance(state, ChainState):
        return Pieces(pack(*whole))
    pieces = tuple(map(Piece, state.segments))
    with writing():
        contents, tensors = encoded(_with_segments(whole, ()))
        again = tuple(piece.read_back() for piece in pieces)
        check(_with_segments(build(contents, tensors), again), _LABELS)
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
        contents["progress"]["fields"]["state"]["fields"]["segments"] = {"tuple": items}
        whole = decoded(contents, tensors)
        state = whole.progress.state
        if isinstance(state, ChainState):
            _LABELS.update(zip(state.segments, labels, strict=True))
    return whole


def _with_segments(whole: Contents, segments: tuple[Segment, ...]) -> Contents:
    state: Any = whole.progress.state
    progress = dataclasses.replace(whole.progress, state=state.replace(segments=segments))
    return whole._replace(progress=progress)


def _opened_piece(data: bytes) -> tuple[Label, Document, Tensors]:
    """A piece as JSON and arrays."""
    contents, tensors = unseal(data)
    item = contents[_SEGMENT]
    place = float(tensors[item["fields"]["times"]["array"]][0])
    return _label(place, data), item, tensors


def _label(place: float, data: bytes) -> Label:
    return Label(place, hashlib.sha256(data).digest(), len(data))


def _place(segment: Segment) -> float:
    """Segments follow one another, so the time at which one begins says where it goes."""
    return float(segment.times[0])


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
