"""Models that this worker has written lately.

Spark hands over the bytes of a key in every micro-batch. Where they are those that this very
process wrote the last time, the model is still at hand: it need not be read, and what follows from
its state need not be computed again. Bytes are compared, so that whatever Spark took back or
another worker wrote is read anew.
"""

from collections import OrderedDict
from typing import Any

from streamgp.gp import ContinualGP, from_bytes

MOST = 5000  # models

_held: OrderedDict[Any, tuple[bytes, ContinualGP]] = OrderedDict()


def model(key: Any, data: bytes) -> ContinualGP:
    """The model of a key, whose bytes these are. It is the caller's, who may change it."""
    held = _held.pop(key, None)
    return held[1] if held is not None and held[0] == data else from_bytes(data)


def keep(key: Any, data: bytes, model: ContinualGP) -> None:
    """Hold a model, whose bytes these are, until so many others have come."""
    _held[key] = data, model
    if len(_held) > MOST:
        _held.popitem(last=False)
