"""What a model is in a file: bytes in safetensors format, numbers as tensors, structure as JSON."""

from streamgp.persistence.contents import Contents, pack, unpack
from streamgp.persistence.disk import read, write
from streamgp.persistence.parcels import unwrap, wrap
from streamgp.persistence.pieces import Label, Piece, Pieces, put_together, take_apart

__all__ = [
    "Contents",
    "Label",
    "Piece",
    "Pieces",
    "pack",
    "put_together",
    "read",
    "take_apart",
    "unpack",
    "unwrap",
    "wrap",
    "write",
]
