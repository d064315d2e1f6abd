"""Intakes: what users hand over, read as one batch per key."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from streamgp.data.axes import Axis
from streamgp.data.keys import as_table, keyed
from streamgp.data.pieces import split_frame
from streamgp.data.reader import Intake, Layout, gather, gather_by_key
from streamgp.data.schema import Schema
from streamgp.errors import DataError, problem
from streamgp.likelihoods import Likelihood

SchemaOf = Callable[[Hashable], Schema]


class Intakes(NamedTuple):
    """Batches that have been read, and what went wrong, by key."""

    read: dict[Hashable, Intake]
    errors: dict[Hashable, Exception]


def read(
    data: Any,
    key: Any,
    layout: Layout,
    channels: Mapping[str, Likelihood],
    axes: tuple[Axis, ...],
    schema_of: SchemaOf,
) -> Intakes:
    """Read a table of many keys, or a dictionary of batches by key.

    Args:
        data: The table or the dictionary.
        key: The column of a table that has the keys.
        layout: What its other columns are.
        channels: The likelihood of each channel, by name.
        axes: What the input columns of the fleet hold; none before its first batch.
        schema_of: The form of the data of a key so far.
    """
    table = as_table(data)
    if table is not None:
        return _of_table(table, key, layout, channels, axes, schema_of)
    if not isinstance(data, Mapping) or key is not None:
        raise DataError(
            problem(
                "a table with `key=`, or a dictionary of batches by key",
                f"a {type(data).__name__}" + ("" if key is None else " with `key=`"),
                'Call `update(frame, key="patient", inputs="time")`.',
            )
        )
    found = Intakes({}, {})
    for name, batch in data.items():
        pair = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        own = layout if as_table(pair[0]) is not None else Layout()
        schema = _of_fleet(schema_of(name), axes, found)
        _add(found, name, lambda p=pair, o=own, s=schema: gather(p[0], p[1], o, channels, s))
    return found


def _of_table(
    table: Any,
    key: Any,
    layout: Layout,
    channels: Mapping[str, Likelihood],
    axes: tuple[Axis, ...],
    schema_of: SchemaOf,
) -> Intakes:
    """All rows at once if that is possible, else key by key."""
    if key is None:
        raise DataError(problem("the name of the column of keys", "none", 'Pass `key="patient"`.'))
    split = keyed(table, key)
    schemas = [schema_of(name) for name in split.keys]
    found = Intakes({}, {})
    try:
        together = None
        if all(_fits(schema, axes) for schema in schemas):
            together = gather_by_key(split.frame, split.owner, layout, channels, axes)
    except DataError:  # of some row; which key's it is shows when keys are read by themselves
        split_frame(split.part(split.owner[:0]), layout, channels, ())  # is it the columns?
    if together is None:
        for name, rows, schema in zip(split.keys, split.rows_of(), schemas, strict=True):
            part, own = split.part(rows), _of_fleet(schema, axes, found)
            _add(found, name, lambda p=part, s=own: gather(p, None, layout, channels, s))
        return found
    for name, intake, schema in zip(split.keys, together, schemas, strict=True):
        labels = {**schema.labels, **intake.schema.labels}
        found.read[name] = intake._replace(schema=Schema(intake.schema.axes, labels))
    return found


def _fits(schema: Schema, axes: tuple[Axis, ...]) -> bool:
    """Whether a key's data are of the fleet's form, without labels of its own."""
    return (not schema.axes or schema.axes == axes) and not any(schema.labels.values())


def _of_fleet(schema: Schema, axes: tuple[Axis, ...], found: Intakes) -> Schema:
    """The form of a key's data: its own, else the fleet's, else that of the first key read."""
    first = next((intake.schema.axes for intake in found.read.values()), ())
    return schema if schema.axes else Schema(axes or first, schema.labels)


def _add(found: Intakes, name: Hashable, work: Callable[[], Intake]) -> None:
    try:
        found.read[name] = work()
    except DataError as error:
        found.errors[name] = error
