"""Reports: what an experiment or a race showed, as Markdown, JSON and pictures."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from rich.console import Console
from rich.markdown import Markdown

from streamgp.version import __version__
from streamgp_lab.reporting import figures
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.tables import Table


class Picture(NamedTuple):
    """A figure of matplotlib and its caption."""

    caption: str
    figure: Any


Part: TypeAlias = str | Table | Picture | list[Claim]


@dataclass(frozen=True)
class Report:
    """Everything there is to write. `parts` are in the order of the Markdown file."""

    name: str
    about: str
    note: str
    parts: Sequence[Part]
    measured: dict[str, Any]  # the numbers themselves, for the JSON file


def write(report: Report, out: Path) -> Path:
    """Write all files of a report into a folder, and return the path of the Markdown file."""
    out.mkdir(parents=True, exist_ok=True)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, streamgp {__version__}"
    tables: list[Table] = []
    claims: list[Claim] = []
    pictures: dict[str, str] = {}
    texts = [f"# {report.name}", report.about, *[report.note] * bool(report.note)]
    for part in report.parts:
        match part:
            case str():
                texts.append(part)
            case Table():
                tables.append(part)
                texts.append(part.markdown())
            case Picture():
                stem = f"{report.name}-{len(pictures) + 1}" if pictures else report.name
                pictures[part.caption] = figures.save(part.figure, out, stem)
                texts.append(f"![{part.caption}]({stem}.png)")
            case _:
                claims += part
                texts.append("\n".join(f"- {claim}" for claim in part))
    record = {
        "name": report.name,
        "about": report.about,
        "note": report.note,
        "streamgp": __version__,
        "machine": machine,
        "tables": tables,
        "claims": claims,
        "pictures": pictures,
        **report.measured,
    }
    (out / f"{report.name}.json").write_text(json.dumps(plain(record), indent=1))
    text = out / f"{report.name}.md"
    text.write_text("\n\n".join([*texts, f"{machine}."]) + "\n")
    return text


def plain(value: Any) -> Any:
    """The value in types that JSON has. Numbers that are not finite become null."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def show(text: Path, console: Console) -> None:
    """Print a Markdown file without its pictures. Outside a terminal it stays plain text."""
    lines = [line for line in text.read_text().splitlines() if not line.startswith("![")]
    if console.is_terminal:
        console.print(Markdown("\n".join(lines)))
    else:
        console.file.write("\n".join(lines) + "\n")
