"""The documentation site has every page and every exported name."""

import inspect
import re
from pathlib import Path

import pytest

import streamgp
import streamgp.client
import streamgp.river
import streamgp.service
import streamgp.sklearn
import streamgp.skpro
import streamgp.sktime

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


PACKAGES = [
    streamgp,
    streamgp.client,
    streamgp.river,
    streamgp.service,
    streamgp.sklearn,
    streamgp.skpro,
    streamgp.sktime,
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_exported_name_is_in_the_reference(package):
    pages = "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    named = set(re.findall(r"^::: (streamgp[.\w]*)$", pages, re.MULTILINE))
    assert {f"{package.__name__}.{name}" for name in package.__all__} <= named


def test_every_decision_is_listed():
    listed = set(re.findall(r"\(adr/([\w-]+\.md)\)", (DOCS / "decisions.md").read_text()))
    assert listed == {page.name for page in (DOCS / "adr").glob("*.md")}


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    pages = {str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md")}
    there = {page for page in pages if f": {page}" in menu}
    assert there == {page for page in pages if not page.startswith("adr/")}


def test_every_setting_of_a_model_is_in_the_guide():
    section = (DOCS / "guide.md").read_text().partition("## Settings")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert named == set(inspect.signature(streamgp.ContinualGP).parameters)
