"""What migrations share: documents of JSON beside arrays, with no class behind them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

Document = dict[str, Any]
Tensors = dict[str, np.ndarray]


class Arrays:
    """The arrays of a file, and those that a migration adds to them."""

    def __init__(self, tensors: Tensors):
        self.tensors = dict(tensors)

    def read(self, value: Document) -> np.ndarray:
        """The array that a document means."""
        return self.tensors[value["array"]]

    def add(self, array: np.ndarray) -> Document:
        """A document of a new array."""
        name = f"migrated/{len(self.tensors)}"
        self.tensors[name] = np.ascontiguousarray(array).reshape(array.shape)
        return {"array": name, "kind": "numpy"}


def instance(name: str, fields: Document) -> Document:
    """A document of an instance of the class that files know by that name."""
    return {"class": name, "fields": fields}


def tuple_of(items: Any) -> Document:
    """A document of a tuple."""
    return {"tuple": list(items)}


def instances(value: Any) -> Iterator[Document]:
    """Every instance in a value, itself among them."""
    if isinstance(value, list):
        for item in value:
            yield from instances(item)
    elif isinstance(value, dict) and "class" in value:
        yield value
        for item in value["fields"].values():
            yield from instances(item)
    elif isinstance(value, dict) and "tuple" in value:
        yield from instances(value["tuple"])
