"""Values that are kept beside models, as bytes of the same format."""

from typing import Any

from streamgp.persistence.container import seal, unseal
from streamgp.persistence.contents import fitting
from streamgp.persistence.documents import Tensors
from streamgp.persistence.values import decode, encode


def wrap(values: dict[str, Any]) -> bytes:
    """Values by name as bytes. Classes among them are storable ones."""
    tensors: Tensors = {}
    return seal({name: encode(value, name, tensors) for name, value in values.items()}, tensors)


def unwrap(data: bytes) -> dict[str, Any]:
    """Values by name from their bytes. No code is taken from them.

    Raises:
        FileError: If they are damaged, or of something else.
    """
    with fitting("what was stored", "Take another copy of it."):
        contents, tensors = unseal(data)
        return {name: decode(value, tensors) for name, value in contents.items()}
