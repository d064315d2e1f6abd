"""Every number that something holds, to compare two of them bit by bit."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def leaves(tree: Any) -> Iterator[np.ndarray]:
    """The numbers in a tree of dataclasses, tuples and dictionaries, in the order of its fields."""
    if isinstance(tree, np.ndarray | np.generic | bool | int | float):
        yield np.asarray(tree)
    elif dataclasses.is_dataclass(tree):
        for field in dataclasses.fields(tree):
            yield from leaves(getattr(tree, field.name))
    elif isinstance(tree, Mapping):
        for part in tree.values():
            yield from leaves(part)
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from leaves(part)
    else:
        assert tree is None or isinstance(tree, str), f"what is in a {type(tree).__name__}?"
