"""`streamgp fleet inspect` and `fleet predict`: what the models of a store have learned."""

import pandas as pd
from rich.console import Console
from rich.table import Table

import streamgp as sgp
from streamgp.cli import inspect, tables
from streamgp.cli.cells import kinds_of
from streamgp.cli.fleet_run import RUN
from streamgp.cli.options import shown
from streamgp.cli.predict import inputs, layout, predicted
from streamgp.errors import DataError, UnknownKeyError, problem
from streamgp.fleet.stored import StoredModels
from streamgp.store import Info, Store

_KEYS = 1000  # models in memory


def show(where: str, key: str | None, most: int, console: Console | None = None) -> None:
    """Print what a store has, or one of its models.

    Args:
        where: The store.
        key: Of the model to show; by default all are listed.
        most: The largest number of keys that are listed: those that were changed last.
        console: Where to print; by default standard output.
    """
    console = console or Console()
    with Store(where, create=False) as store:
        if key is not None:
            stored = store.fetch(key)
            own = f"{key} in {shown(where)}: {_size(stored.info.size)}"
            inspect.show(stored.model, own, console)
            return
        infos = store.infos()
    size, seen = sum(info.size for info in infos), sum(map(_seen, infos))
    console.print(
        f"{shown(where)}: {len(infos):,} keys, {seen:,} observations, {_size(size)}.",
        soft_wrap=True,
    )
    latest = sorted(infos, key=lambda info: info.changed, reverse=True)[:most]
    table = Table("key", "updates", "observations", "size", "changed")
    for info in latest:
        channels = ", ".join(f"{name} {count:,}" for name, count in info.observations.items())
        changed = f"{info.changed:%Y-%m-%d %H:%M:%S}"
        table.add_row(info.key, f"{info.updates:,}", channels, _size(info.size), changed)
    if len(latest) < len(infos):
        table.caption = f"the {len(latest):,} keys that were changed last; times are UTC"
    console.print(table)


def _seen(info: Info) -> int:
    return sum(info.observations.values())


def _size(size: int) -> str:
    return f"{size / 1024:,.1f} KiB"


def predict(
    where: str,
    source: str,
    out: str,
    *,
    key: str,
    channels: list[str] | None = None,
    level: float = 0.95,
    format: str | None = None,  # noqa: A002
    on_error: str = "stop",
) -> None:
    """Write the keys and the inputs of a table, and what the model of each key predicts there.

    Args:
        where: The store.
        source: The table's file, or `-` for standard input.
        out: The file to write, or `-` for standard output.
        key: The column of keys.
        channels: The names of the channels to predict; by default all of them.
        level: The probability of the intervals.
        format: The format of the table, if the name of its file does not tell.
        on_error: Whether to "stop" at a row that cannot be used, or to "skip" it.

    Raises:
        DataError: If the table has no rows or lacks a column, or a row cannot be used.
        UnknownKeyError: If it has keys without data.
    """
    with Store(where, create=False) as store:
        models = StoredModels(store, _KEYS)
        model, book = _one(models, where), store.offset(RUN)
        data = layout(model, None if book is None else book["config"])
        frames = [
            _predicted(models, rows[[key, *data.columns]], key, channels, level)
            for rows in inputs(
                source, data, kinds_of(model.axes), required=[key], on_error=on_error, format=format
            )
        ]
    tables.write(pd.concat(frames, ignore_index=True), out, format if out == "-" else None)


def _one(models: StoredModels, where: str) -> sgp.ContinualGP:
    """A model that has data: the inputs of all of them are alike."""
    for name in models:
        if models[name].state is not None:
            return models[name]
    raise DataError(problem("a store with data", f"{shown(where)} without", "Learn some first."))


def _predicted(
    models: StoredModels, table: pd.DataFrame, key: str, channels: list[str] | None, level: float
) -> pd.DataFrame:
    """The predictions of some rows, in their order."""
    parts = []
    for name, rows in table.groupby(key, sort=False):
        model = models.get(name)
        if model is None or model.state is None:
            raise UnknownKeyError(
                problem("keys that have data", f"{name!r}", "Leave out the rows of that key.")
            )
        made = predicted(model, rows.drop(columns=key), channels or list(model.channels), level)
        made.insert(0, key, name)
        parts.append(made)
    return pd.concat(parts).sort_index()
