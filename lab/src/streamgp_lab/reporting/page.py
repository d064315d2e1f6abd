"""The HTML page over all reports in a folder."""

import html
import json
from pathlib import Path
from typing import Any

from streamgp.version import __version__
from streamgp_lab.reporting.claims import Claim
from streamgp_lab.reporting.tables import Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-size: 13px; }
td, th { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; } th { border-bottom: 2px solid #888; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
img { max-width: 100%; } h2 { margin-top: 3rem; } .note { color: #555; }
"""


def index(out: Path, title: str) -> Path:
    """Write index.html from the JSON files of all reports in the folder."""
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    records = [record for record in records if {"name", "tables", "claims"} <= set(record)]
    body = "".join(_section(record) for record in records)
    links = " · ".join(f'<a href="#{r["name"]}">{r["name"]}</a>' for r in records)
    page = out / "index.html"
    page.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>streamgp {__version__}. NLPD is the mean negative log predictive density per "
        f"held-out point. Lower is better.</p><p>{links}</p>{body}</html>\n"
    )
    return page


def _section(record: dict[str, Any]) -> str:
    name = record["name"]
    parts = [f'<h2 id="{name}">{name}</h2><p>{html.escape(record["about"])}</p>']
    if record["note"]:
        parts.append(f"<p class=note>{html.escape(record['note'])}</p>")
    parts += [
        f'<figure><img src="{file}" alt="{html.escape(caption)}"><figcaption>'
        f"{html.escape(caption)}</figcaption></figure>"
        for caption, file in record["pictures"].items()
    ]
    parts += [Table(**table).html() for table in record["tables"]]
    claims = (html.escape(str(Claim(**claim))) for claim in record["claims"])
    parts.append("<ul>" + "".join(f"<li>{claim}</li>" for claim in claims) + "</ul>")
    return "".join(parts)
