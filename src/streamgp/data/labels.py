"""Labels: the names of classes, numbered in the order in which a channel met them."""

import numpy as np
from jaxtyping import Float

from streamgp.data.columns import Column, Label
from streamgp.errors import DataError, problem

_YES_NO = (False, True)


def encode(
    column: Column,
    known: tuple[Label, ...] | None,
    count: int,
    what: str,
    *,
    ordered: bool,
) -> tuple[Float[np.ndarray, " N"], tuple[Label, ...]]:
    """Class numbers, NaN where missing, and all labels so far.

    `known` are the labels so far: none if the channel came in numbers, None if it never came.
    `ordered` classes take their order from a categorical data type, never from the alphabet.
    """
    if column.kind == "number" and not (known and known != _YES_NO):
        if known is None:
            known = _YES_NO if column.is_boolean and count == 2 else ()
        return column.values, known
    if known == () or column.kind == "time":
        raise _other_labels(f"numbers from 0 to {count - 1}", column, what)
    present = dict.fromkeys(column.values[~column.missing].tolist())
    labels = _with_new(known or (), list(present), column, count, what, ordered=ordered)
    number = {label: float(i) for i, label in enumerate(labels)}
    codes = [np.nan if gone else number[v] for v, gone in zip(*column[1:3], strict=True)]
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
    new = [label for label in present if label not in known]
    if column.kind == "number" and new:
        raise _other_labels(f"labels among {list(known)}", column, what)
    if column.categories:
        listed = column.categories
        if len(set(listed) | set(known)) > count:  # listed, but perhaps not used
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
                "Count every class there can be when the channel is made.",
            )
        )
    if ordered and new and labels != tuple(c for c in column.categories if c in labels):
        raise DataError(
            problem(
                f"{what} in an order",
                f"labels that come in none, such as {new[0]!r}",
                "Use a categorical data type with the classes from lowest to highest, or numbers.",
            )
        )
    return labels


def _other_labels(wanted: str, column: Column, what: str) -> DataError:
    return DataError(
        problem(
            f"{what} as {wanted}, as they came first",
            column.describe(),
            "A channel's classes are either always numbers or always labels.",
        )
    )


def all_classes(labels: tuple[Label, ...], count: int) -> tuple[Label, ...]:
    """The labels of all classes; a class that has not been met is called by its number."""
    return (*labels, *range(len(labels), count))
