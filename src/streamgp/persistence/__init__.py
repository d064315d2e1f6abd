"""What a model is in a file: bytes in safetensors format, numbers as tensors, structure as JSON."""

from streamgp.persistence.contents import pack, unpack
from streamgp.persistence.disk import read, write

__all__ = ["pack", "read", "unpack", "write"]
