"""Write docs/licences.md: the licences of what streamgp needs, as their packages state them."""

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streamgp_lab.reporting.tables import Table

_TEXT = """# Licences

streamgp has the MIT licence. These are the licences of what it needs, as the installed packages
state them in their metadata. `streamgp-lab check licences` writes this page.

The compiled module contains parts of nanobind (BSD-3-Clause) and of robin-map (MIT). Their licences
are in `core/licences/` and in every wheel.
"""
_NOT_FOR_USERS = ("dev", "docs")
_LONGEST = 60  # characters of a licence; some packages put the whole text there


def main(out: str = "docs/licences.md") -> None:
    """Look at every package that is needed, and write the page."""
    base = _closure(_required(None))
    tables = [_table("The base install, with all that it needs in turn", base)]
    extras = metadata.metadata("streamgp").get_all("Provides-Extra") or []
    for extra in sorted(set(extras) - set(_NOT_FOR_USERS)):
        tables.append(_table(f"The extra `{extra}`", _required(extra) - base))
    kept = [table.markdown() for table in tables if table.rows]
    Path(out).write_text("\n".join([_TEXT, *kept]))


def _required(extra: str | None, package: str = "streamgp") -> set[str]:
    """What a package asks for, by itself or for one of its extras; not other extras of streamgp."""
    found: set[str] = set()
    for line in metadata.requires(package) or []:
        need = Requirement(line)
        wanted = need.marker is None or need.marker.evaluate({"extra": extra or ""})
        asked = extra is None or (need.marker is not None and "extra" in str(need.marker))
        if wanted and asked and canonicalize_name(need.name) != "streamgp":
            found.add(canonicalize_name(need.name))
    return found


def _closure(names: set[str]) -> set[str]:
    done: set[str] = set()
    while names - done:
        name = min(names - done)
        done.add(name)
        names = names | _required(None, name)
    return done


def _table(caption: str, names: set[str]) -> Table:
    rows = [[name, *_stated(name)] for name in sorted(names)]
    return Table(caption, ["package", "version", "licence"], rows)


def _stated(name: str) -> tuple[str, str]:
    """The version that is installed, and its licence."""
    try:
        stated = metadata.metadata(name).json
    except metadata.PackageNotFoundError:
        return "–", "not installed here"
    classifiers = stated.get("classifier", [])
    ends = [c.split(" :: ")[-1] for c in classifiers if c.startswith("License :: ")]
    short = re.sub(r"\s+", " ", str(stated.get("license", "")))
    licence = str(stated.get("license_expression", "")) or ", ".join(ends) or short[:_LONGEST]
    return str(stated["version"]), licence or "not stated"
