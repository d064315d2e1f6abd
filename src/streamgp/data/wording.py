"""Counts and places in messages, for one and for many."""


def counted(count: int, thing: str) -> str:
    """A number and a noun.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def place(count: int, first: int) -> str:
    """Where so many values are, of which the first is in the row `first`.

    >>> place(1, 7), place(2, 7)
    ('in row 7', 'the first in row 7')
    """
    return f"in row {first}" if count == 1 else f"the first in row {first}"


def and_more(first: str, count: int) -> str:
    """The first of so many things, and how many there are besides.

    >>> and_more("'a'", 1), and_more("'a'", 3)
    ("'a'", "'a' and 2 more")
    """
    return first if count == 1 else f"{first} and {count - 1} more"
