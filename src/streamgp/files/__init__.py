"""What a model is in a file: bytes in safetensors format, numbers as tensors, structure as JSON."""

from streamgp.files.contents import pack, unpack
from streamgp.files.disk import read, write
from streamgp.files.registry import register

__all__ = ["pack", "read", "register", "unpack", "write"]
