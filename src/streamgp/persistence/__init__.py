"""What a model is in a file: bytes in safetensors format, numbers as tensors, structure as JSON."""

from streamgp.persistence.contents import Contents, pack, unpack
from streamgp.persistence.disk import read, write

__all__ = ["Contents", "pack", "read", "unpack", "write"]
