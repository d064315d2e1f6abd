"""Files of older formats brought to the present one, as documents and arrays.

A migration reads and writes JSON and arrays only. It makes no instance of a class and imports
nothing, so that it needs none of the libraries that an old file was written with.
"""

from collections.abc import Callable

from streamgp.persistence import format_1, format_2
from streamgp.persistence.documents import Document, Tensors

# From each older version, the function that makes (document, tensors) those of the next one.
MIGRATIONS: dict[int, Callable[[Document, Tensors], tuple[Document, Tensors]]] = {
    1: format_1.migrated,
    2: format_2.migrated,
}
