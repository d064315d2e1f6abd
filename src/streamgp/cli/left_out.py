"""Rows that cannot be used: a run stops at the first, or leaves them out and counts them."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from streamgp.cli.tables import Bad
from streamgp.data.wording import counted
from streamgp.errors import DataError, problem

_NAMED = 20  # rows that are named in full; later ones are counted only


class LeftOut:
    """What a command does with rows that cannot be used.

    Args:
        source: The name of the table, for messages.
        skips: Whether to leave such rows out.
        how: What a user writes in order to leave them out.
        console: Is told which rows are left out.
        counts: How many were left out before, by reason.

    Attributes:
        counts: How many are left out, by reason.
    """

    def __init__(
        self,
        source: str,
        *,
        skips: bool,
        how: str,
        console: Console,
        counts: Mapping[str, int] | None = None,
    ):
        self._source, self._skips, self._how, self._console = source, skips, how, console
        self._named = 0
        self.counts = dict(counts or {})

    def take(self, bad: Sequence[Bad]) -> None:
        """Stop at rows that cannot be used, or note that they are left out.

        Raises:
            DataError: At the first of them, unless such rows are left out.
        """
        for each in bad:
            if not self._skips:
                where = f"{each.cell} in {each.unit} {each.number} of {self._source}"
                remedy = f"{each.remedy} Or leave such rows out with {self._how}."
                raise DataError(problem(_in_column(each), where, remedy))
            self.counts[each.reason] = self.counts.get(each.reason, 0) + 1
            self._named += 1
            if self._named <= _NAMED:
                self._say(
                    f"{each.unit.capitalize()} {each.number} of {self._source} is left out: "
                    f"expected {_in_column(each)}; got {each.cell}."
                )
            if self._named == _NAMED:
                self._say("Further rows that are left out are only counted.")

    @property
    def count(self) -> int:
        """How many rows are left out, in this run and before it."""
        return sum(self.counts.values())

    @property
    def summary(self) -> str:
        """How many rows are left out and why, as a sentence; empty if there are none."""
        if not self.count:
            return ""
        most = sorted(self.counts.items(), key=lambda item: -item[1])
        reasons = "; ".join(f"{number:,} without {reason.rstrip(',')}" for reason, number in most)
        return f"{counted(self.count, 'row')} left out: {reasons}."

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)


def _in_column(bad: Bad) -> str:
    return bad.expected if bad.column is None else f"{bad.expected} in column {bad.column!r}"
