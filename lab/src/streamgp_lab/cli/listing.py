"""What the commands share: lists of names, and checks of the user's choice."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from streamgp.errors import ConfigurationError, problem


def show(abouts: Mapping[str, str]) -> None:
    """Print every name and what it stands for."""
    table = Table.grid(padding=(0, 2))
    for name, about in abouts.items():
        table.add_row(f"[bold]{name}[/bold]", about)
    Console().print(table)


def chosen(names: Iterable[str], known: Iterable[str], what: str) -> list[str]:
    """The names without duplicates; all known names if one of them is `all`."""
    names, known = list(dict.fromkeys(names)), list(known)
    for name in names:
        if name not in (*known, "all"):
            raise ConfigurationError(
                problem(f"the name of {what}, or all", repr(name), "Use --list to see the names.")
            )
    return known if "all" in names else names


def check_numbers(share: float, **counts: int) -> None:
    """Raise unless counts are positive and the share is between zero and one."""
    if min(counts.values()) < 1 or not 0 < share <= 1:
        got = ", ".join(f"{name} {value}" for name, value in {**counts, "share": share}.items())
        wanted = f"{' and '.join(counts)} of at least 1, and a share above 0 and at most 1"
        raise ConfigurationError(problem(wanted, got, "Change or omit the option."))
