"""Labels: the names of classes, numbered in the order in which a channel met them."""

import numpy as np
from jaxtyping import Float

from streamgp.data.columns import Column, Label
from streamgp.errors import DataError, problem

_NO_YES = (False, True)


def encode(
    column: Column,
    known: tuple[Label, ...] | None,
    count: int,
    what: str,
    *,
    ordered: bool,
) -> tuple[Float[np.ndarray, " N"], tuple[Label, ...]]:
    """Turn classes into class numbers.

    Booleans are labels, and they equal the numbers 0 and 1: either may come after the other.

    Args:
        column: The classes: numbers, booleans or labels.
        known: The labels of the channel so far. There are none if it was observed in numbers, and
            it is None if the channel has not been observed yet.
        count: How many classes there are.
        what: What the observations are, for a message.
        ordered: Whether the order of the classes matters. Labels then take their order from a
            categorical data type, never from the alphabet.

    Returns:
        The class numbers, NaN where a value is missing; and the labels of the channel from now on.

    Raises:
        DataError: If numbers come where labels came before or the other way round, if there are
            more labels than classes, or if labels have no order and need one.
    """
    if column.kind == "number":
        if known is None:
            known = _NO_YES if column.is_boolean else ()
        if not known or (known == _NO_YES and count == len(_NO_YES)):
            return column.values, known
    if column.kind == "time":
        raise DataError(
            problem(f"{what} as class numbers or labels", column.describe(), "Convert them first.")
        )
    present = dict.fromkeys(column.values[~column.missing].tolist())
    if known == ():
        if not all(isinstance(label, bool) for label in present):
            raise _other_labels(f"numbers from 0 to {count - 1}", column, what)
        values = [float(value) if value in _NO_YES else np.nan for value in column.values]
        return np.asarray(values, float), ()
    labels = _with_new(known or (), list(present), column, count, what, ordered=ordered)
    number = {label: float(i) for i, label in enumerate(labels)}
    codes = [
        np.nan if gone else number[value]
        for value, gone in zip(column.values, column.missing, strict=True)
    ]
    return np.asarray(codes, float), labels


def _with_new(
    known: tuple[Label, ...],
    present: list[Label],
    column: Column,
    count: int,
    what: str,
    *,
    ordered: bool,
) -> tuple[Label, ...]:
    """The known labels, and after them the new ones."""
    new = [label for label in present if label not in known]
    if known == _NO_YES and new:
        raise _other_labels("booleans", column, what)
    if column.kind == "number" and new:
        raise _other_labels(f"labels among {list(known)}", column, what)
    if column.categories:
        listed = column.categories
        if len(set(listed) | set(known)) > count:  # a data type may list labels that never occur
            listed = tuple(label for label in listed if label in present)
        new = [label for label in listed if label not in known]
    else:
        new.sort(key=lambda label: (str(type(label)), label))
    labels = (*known, *new)
    if len(labels) > count:
        raise DataError(
            problem(
                f"{count} labels at most in {what}",
                f"{len(labels)}: {list(labels)}",
                "Count every class that may occur when you make the channel.",
            )
        )
    if ordered and new and labels != tuple(c for c in column.categories if c in labels):
        raise DataError(
            problem(
                f"{what} in an order",
                f"labels without an order, such as {new[0]!r}",
                "Use a categorical data type with the classes from lowest to highest, or numbers.",
            )
        )
    return labels


def _other_labels(wanted: str, column: Column, what: str) -> DataError:
    return DataError(
        problem(
            f"{what} as {wanted}, as in the first batch",
            column.describe(),
            "A channel's classes are either always numbers or always labels.",
        )
    )


def all_classes(labels: tuple[Label, ...], count: int) -> tuple[Label, ...]:
    """The labels of all classes; a class that has not been met is called by its number."""
    return (*labels, *range(len(labels), count))
