"""Models from files and bytes; `ContinualGP.save` and `to_bytes` are the other way."""

import os

from streamgp import files
from streamgp.errors import FileError, problem
from streamgp.model import ContinualGP


def load(path: str | os.PathLike[str]) -> ContinualGP:
    """The model that `ContinualGP.save` wrote, ready to go on with its stream.

    Nothing in the file is run. A file that is damaged, not a model's, or of a newer format raises
    `FileError`; one that is missing or forbidden, `FileNotFoundError` or `PermissionError`.

    Example:
        >>> import tempfile, numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
        >>> report = model.update(np.arange(5.0), np.zeros(5))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/patient.sgp")
        ...     again = sgp.load(f"{folder}/patient.sgp")
        >>> again.observations
        {'y': 5}
    """
    return from_bytes(files.read(path))


def from_bytes(data: bytes | bytearray | memoryview) -> ContinualGP:
    """The model that `ContinualGP.to_bytes` gave, ready to go on with its stream."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise FileError(
            problem("bytes", f"a {type(data).__name__}", "Use `streamgp.load` for a path.")
        )
    return ContinualGP._of(*files.unpack(bytes(data)))
