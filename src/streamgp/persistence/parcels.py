"""Values that are kept beside models, as bytes of the same format."""

from typing import Any

from streamgp.persistence.container import Document, Tensors, seal, unseal
from streamgp.persistence.contents import fitting
from streamgp.persistence.values import decode, encode


def wrap(values: dict[str, Any]) -> bytes:
    """Values by name as bytes. Classes among them are storable ones."""
    with fitting("values", "Keep only what a model's notes may hold."):
        tensors: Tensors = {}
        contents = {name: encode(value, name, tensors) for name, value in values.items()}
        _decoded(contents, tensors)  # what could not be read again is not written
    return seal(contents, tensors)


def unwrap(data: bytes) -> dict[str, Any]:
    """Values by name from their bytes. No code is taken from them.

    Raises:
        FileError: If they are damaged, or of something else.
    """
    with fitting("what was stored", "Take another copy of it."):
        return _decoded(*unseal(data))


def _decoded(contents: Document, tensors: Tensors) -> dict[str, Any]:
    return {name: decode(value, tensors) for name, value in contents.items()}
