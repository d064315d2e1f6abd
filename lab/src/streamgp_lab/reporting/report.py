"""Writing down what an experiment showed: Markdown, JSON, pictures, and a page over all of them."""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamgp.version import __version__
from streamgp_lab.experiments import figures
from streamgp_lab.experiments.protocol import Outcome
from streamgp_lab.experiments.tables import Table, claims, tables

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-size: 13px; }
td, th { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; } th { border-bottom: 2px solid #888; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
img { max-width: 100%; } h2 { margin-top: 3rem; } .note { color: #555; }
"""


def write(outcomes: Sequence[Outcome], out: Path) -> list[Path]:
    """All files of one experiment; the pictures are of the first seed."""
    out.mkdir(parents=True, exist_ok=True)
    name = outcomes[0].experiment.name
    pictures = _pictures(outcomes[0], out)
    found, said = tables(outcomes), claims(outcomes)
    text = out / f"{name}.md"
    text.write_text(_markdown(outcomes, found, said, pictures))
    record = out / f"{name}.json"
    record.write_text(json.dumps(_record(outcomes, found, said, pictures), indent=1))
    return [text, record, *(out / picture for picture in pictures.values())]


def _pictures(outcome: Outcome, out: Path) -> dict[str, str]:
    """PNG and SVG of every figure; the names of the PNGs by caption."""
    import matplotlib.pyplot as plt

    drawn = dict(outcome.experiment.figures)
    if len(outcome.problem.train) > 1 and any(len(r.seconds) > 1 for r in outcome.runs.values()):
        drawn["The first batch as others follow"] = figures.retention
    names = {}
    for index, (caption, draw) in enumerate(drawn.items()):
        figure = draw(outcome)
        stem = outcome.experiment.name + (f"-{index + 1}" if index else "")
        for kind in ("png", "svg"):
            figure.savefig(out / f"{stem}.{kind}", dpi=110)
        plt.close(figure)
        names[caption] = f"{stem}.png"
    return names


def _markdown(
    outcomes: Sequence[Outcome], found: list[Table], said: list[str], pictures: dict[str, str]
) -> str:
    experiment, problem = outcomes[0].experiment, outcomes[0].problem
    parts = [f"# {experiment.name}", experiment.about]
    parts += [problem.note] * bool(problem.note)
    parts.append(f"Seeds: {len(outcomes)}.")
    parts += [table.markdown() for table in found]
    parts.append("\n".join(f"- {sentence}" for sentence in said))
    parts += [f"![{caption}]({name})" for caption, name in pictures.items()]
    return "\n\n".join(parts) + "\n"


def _record(
    outcomes: Sequence[Outcome], found: list[Table], said: list[str], pictures: dict[str, str]
) -> dict[str, Any]:
    """Everything as plain numbers and text."""
    experiment, problem = outcomes[0].experiment, outcomes[0].problem
    return plain(
        {
            "experiment": experiment.name,
            "about": experiment.about,
            "note": problem.note,
            "streamgp": __version__,
            "tables": [table._asdict() for table in found],
            "claims": said,
            "pictures": pictures,
            "seeds": [
                {
                    method: {
                        "scores": {
                            channel: [[s and s._asdict() for s in row] for row in rows]
                            for channel, rows in run.scores.items()
                        },
                        "gap": {channel: s._asdict() for channel, s in run.gap.items()},
                        "singles": run.singles,
                        "seconds": run.seconds,
                        "points": run.points,
                        "reason": run.reason,
                    }
                    for method, run in outcome.runs.items()
                }
                for outcome in outcomes
            ],
        }
    )


def plain(value: Any) -> Any:
    """Numbers that JSON knows: what is not a number is null."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def index(out: Path) -> Path:
    """A page over all experiments that the folder has."""
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    records = [record for record in records if "experiment" in record]
    body = "".join(_section(record) for record in records)
    links = " · ".join(f'<a href="#{r["experiment"]}">{r["experiment"]}</a>' for r in records)
    page = out / "index.html"
    page.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>streamgp: experiments</title>"
        f"<style>{_STYLE}</style><h1>Continual multi-task Gaussian processes, reproduced</h1>"
        f"<p>streamgp {__version__}. NLPD: mean negative log predictive density of a held-out "
        f"point: lower is better.</p><p>{links}</p>{body}</html>\n"
    )
    return page


def _section(record: dict[str, Any]) -> str:
    name = record["experiment"]
    parts = [f'<h2 id="{name}">{name}</h2><p>{html.escape(record["about"])}</p>']
    if record["note"]:
        parts.append(f"<p class=note>{html.escape(record['note'])}</p>")
    parts += [
        f'<figure><img src="{file}" alt="{html.escape(caption)}"><figcaption>'
        f"{html.escape(caption)}</figcaption></figure>"
        for caption, file in record["pictures"].items()
    ]
    parts += [_html(Table(**table)) for table in record["tables"]]
    parts.append("<ul>" + "".join(f"<li>{html.escape(c)}</li>" for c in record["claims"]) + "</ul>")
    return "".join(parts)


def _html(table: Table) -> str:
    def row(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in table.rows)
    caption = html.escape(table.caption)
    return (
        f"<table><caption>{caption}</caption><thead>{row(table.heading, 'th')}</thead>"
        f"<tbody>{body}</tbody></table>"
    )
