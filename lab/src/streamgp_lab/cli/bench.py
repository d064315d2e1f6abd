"""`streamgp bench`: measure streamgp beside its peers, and write down what it shows."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.status import Status

from streamgp.errors import ConfigurationError, problem
from streamgp_lab.races import report
from streamgp_lab.races.catalogue import ALONE, COMPARISONS, growth_claims, start_claims
from streamgp_lab.races.comparison import Comparison
from streamgp_lab.races.environments import OURS, python
from streamgp_lab.races.growth import curves
from streamgp_lab.races.race import race
from streamgp_lab.races.start import starts

Told = Callable[[str], None]


def list_all() -> None:
    """Print every comparison and what it is."""
    console = Console()
    for comparison in COMPARISONS.values():
        console.print(f"[bold]{comparison.name:12}[/bold] {comparison.about}")
    for name, about in ALONE.items():
        console.print(f"[bold]{name:12}[/bold] {about}")


def run(
    names: Sequence[str], out: Path, *, peers: Path, repeats: int = 3, share: float = 1.0
) -> None:
    """These comparisons, or all, one after the other: two at once would disturb each other."""
    known = [*COMPARISONS, *ALONE]
    for name in names:
        if name not in (*known, "all"):
            raise ConfigurationError(
                problem("the name of a comparison, or all", repr(name), "See `--list`.")
            )
    if repeats < 1 or not 0 < share <= 1:
        got = f"repeats={repeats}, share={share}"
        raise ConfigurationError(
            problem("at least one repeat, a share up to 1", got, "Leave them out.")
        )
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    for name in known if "all" in names else dict.fromkeys(names):
        with console.status(name) as status:
            text = _run(name, out, peers, repeats, share, _teller(status, name))
        console.print(Markdown(text.read_text().split("![")[0]))
        console.print(f"Everything is in {text}")


def _teller(status: Status, name: str) -> Told:
    return lambda what: status.update(f"{name}: {what}")


def _run(name: str, out: Path, peers: Path, repeats: int, share: float, told: Told) -> Path:
    if name == "growth":
        found = curves(share, told)
        return report.write_growth(found, growth_claims(found), out)
    if name == "start":
        measured = starts(repeats, told)
        return report.write_starts(measured, start_claims(measured), out)
    return _compare(COMPARISONS[name], out, peers, repeats, share, told)


def _compare(
    comparison: Comparison, out: Path, peers: Path, repeats: int, share: float, told: Told
) -> Path:
    races = comparison.races(share)
    for name in sorted({entry.environment for each in races for entry in each.entries} - {OURS}):
        told(f"an environment for {name} in {peers}")
        python(name, peers)
    outcomes = []
    for each in races:
        times = 1 if each.once else repeats
        outcomes.append((each, race(each.problem, each.entries, peers, repeats=times, told=told)))
        text = report.write_races(comparison, outcomes, out)  # lest what is done be lost
    return text
