"""The outside of a file: a safetensors container with one JSON document in its metadata.

The document has the format's name and version, the library's version, the contents, and a digest
of every byte of the file (with zeros in the digest's own place), so that damage is told from data.
It is no signature: who can write the file can write the digest.
"""

import hashlib
import json
from typing import Any

import numpy as np
import safetensors.numpy

from streamgp.errors import FileError, problem
from streamgp.version import __version__

Document = dict[str, Any]  # of JSON
Tensors = dict[str, np.ndarray]

FORMAT = 4

_NAME = "streamgp"
_BLANK = "0" * 64


def seal(contents: Document, tensors: Tensors) -> bytes:
    """Contents and tensors as bytes; equal ones give equal bytes."""
    document = {
        "digest": _BLANK,
        "format": _NAME,
        "version": FORMAT,
        "streamgp": __version__,
        "contents": contents,
    }
    # One key of metadata: safetensors writes several in any order.
    data = safetensors.numpy.save(tensors, {_NAME: json.dumps(document, allow_nan=False)})
    return data.replace(_BLANK.encode(), _digest(data), 1)


def unseal(data: bytes) -> tuple[Document, Tensors]:
    """Contents and tensors as they were written."""
    document, tensors = _parts(data)
    if document["version"] != FORMAT:
        raise FileError(
            problem(
                f"a file of format {FORMAT}, which is what streamgp {__version__} reads",
                f"format {document['version']}, written by streamgp {document.get('streamgp')}",
                "Install that version of streamgp.",
            )
        )
    digest = str(document.get("digest")).encode()
    if _digest(data.replace(digest, _BLANK.encode(), 1)) != digest:
        raise _damaged("bytes that have changed since they were written")
    return document["contents"], tensors


def _parts(data: bytes) -> tuple[Document, Tensors]:
    try:
        # Copies: what a version of safetensors gives may be a read-only view of all bytes.
        tensors = {name: array.copy() for name, array in safetensors.numpy.load(data).items()}
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
    except Exception as error:  # whatever a parser makes of arbitrary bytes
        raise _damaged(f"{len(data)} bytes that are not in safetensors format") from error
    try:
        document = json.loads(metadata[_NAME])
        known = document["format"] == _NAME and type(document["version"]) is int
    except Exception as error:
        raise _damaged("a safetensors file of something else") from error
    if not known:
        raise _damaged("a safetensors file of something else")
    return document, tensors


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _damaged(got: str) -> FileError:
    return FileError(
        problem(
            "a file that `ContinualGP.save` or `to_bytes` wrote, whole",
            got,
            "Take another copy of the file.",
        )
    )
