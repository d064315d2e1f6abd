"""What pages tell their readers to type: commands, extras, tests that show a promise."""

import argparse
import ast
import re
import shlex
import tomllib
import urllib.parse
from pathlib import Path

import pytest
from tests.quick_start import blocks
from tests.unit.test_readme import PAGES, README, ROOT, named

from streamgp import configuration
from streamgp.cli.main import _parser
from streamgp_lab.cli.main import _parser as _lab_parser

DOCS = ROOT / "docs"
# Pages and folders without an example, and why.
WITHOUT_EXAMPLE = {
    "adr": "reasons of decisions",
    "reference": "its examples are in docstrings, where doctest runs them",
    "architecture.md": "a list of folders and modules",
    "decisions.md": "a list of pages",
    "glossary.md": "a list of words",
    "licences.md": "a list of packages",
}
# Hosts that the pages may link to. Add one on purpose, after you have opened the link.
HOSTS = {"arxiv.org", "keepachangelog.com", "semver.org", "tinygp.readthedocs.io"}
# Languages of blocks beside Python. No block is without a language.
LANGUAGES = {"console", "dockerfile", "ini", "json", "python", "text", "toml", "yaml"}
PARSERS = {"streamgp": _parser, "streamgp-lab": _lab_parser}
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = set(CONFIGURATION["project"]["optional-dependencies"])


def teaches(page: Path) -> bool:
    return not {page.parent.name, page.name} & set(WITHOUT_EXAMPLE)


def commands(text: str) -> list[list[str]]:
    """The commands of this project in some lines of a shell, word by word."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\||\$\(", re.sub(r"(^|\s)#.*", "", line)):
            if part.strip().startswith(tuple(PARSERS)):
                found.append(shlex.split(part.split("<")[0].rstrip(" )")))
    return found


def consoles(page: Path) -> list[list[str]]:
    shown = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [words for block in shown for words in commands(block)]


def tables(page: Path) -> list[str]:
    """The configurations of models in TOML that a page shows."""
    shown = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [table for table in shown if "[channels]" in table]


def assert_understood(words: list[str]) -> None:
    try:
        PARSERS[words[0]]().parse_args(words[1:])
    except SystemExit as error:
        pytest.fail(f"`{' '.join(words)}` ends with {error.code}")


def test_commands_are_found_in_what_shells_are_given():
    text = "make demo\ntail -f x | streamgp run a.toml - \\\n  --format jsonl  # rows\n"
    text += "T=$(streamgp token t --name me)\nstreamgp run a.toml - < b.csv\n"
    assert commands(text) == [
        ["streamgp", "run", "a.toml", "-", "--format", "jsonl"],
        ["streamgp", "token", "t", "--name", "me"],
        ["streamgp", "run", "a.toml", "-"],
    ]
    with pytest.raises(pytest.fail.Exception):
        assert_understood(["streamgp", "run", "--such-an-option"])


@pytest.mark.parametrize("page", [page for page in PAGES if consoles(page)], ids=named)
def test_commands_of_a_page_are_understood(page):
    for words in consoles(page):
        assert_understood(words)


@pytest.mark.parametrize("table", tables(DOCS / "commands.md"))
def test_configurations_are_understood(table):
    assert configuration.from_tables(tomllib.loads(table)).build().channels


def helps(parser: argparse.ArgumentParser) -> list[str]:
    """The help of a command and of those below it."""
    below = [
        each
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for each in action.choices.values()
    ]
    return [parser.format_help(), *(text for each in below for text in helps(each))]


@pytest.mark.parametrize("name", PARSERS)
def test_examples_in_the_help_are_understood(name):
    examples = [
        words
        for text in helps(PARSERS[name]())
        for words in commands(text.partition("examples:")[2])
    ]
    assert examples
    for words in examples:
        assert_understood(words)


@pytest.mark.parametrize(
    "page", [page for page in DOCS.glob("**/*.md") if teaches(page)], ids=named
)
def test_a_page_that_teaches_has_an_example(page):
    assert blocks(page.read_text()) or consoles(page)


def test_exceptions_are_pages_that_have_no_example():
    for name in WITHOUT_EXAMPLE:
        place = DOCS / name
        assert place.exists(), name
        assert place.is_dir() or not (blocks(place.read_text()) or consoles(place)), name


def fences(text: str) -> list[tuple[str, str]]:
    """Language and text of every block."""
    return re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def is_python(text: str) -> bool:
    """Whether a text is statements of Python that do something."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return any(not isinstance(each, ast.Expr) or isinstance(each.value, ast.Call) for each in body)


def strangers(text: str) -> list[str]:
    """Links to other sites that are not https, have no proper host, or whose host is not known."""
    found = []
    for address in re.findall(
        r"\w+://[^\s)>`\"']+", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
    ):
        parts = urllib.parse.urlsplit(address)
        if parts.scheme != "https" or parts.port or parts.username or parts.hostname not in HOSTS:
            found.append(address)
    return found


def test_strange_links_are_found():
    text = "[a](http://arxiv.org/abs/1) <https://arxiv.org/abs/2> `http://127.0.0.1` https://arxiv.com/"
    assert strangers(text) == ["http://arxiv.org/abs/1", "https://arxiv.com/"]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_to_other_sites_are_known(page):
    assert not strangers(page.read_text())


def test_no_known_host_is_left_over():
    text = "".join(page.read_text() for page in PAGES)
    assert {host for host in HOSTS if f"https://{host}" in text} == HOSTS


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_blocks_say_their_language_and_python_is_called_python(page):
    for language, text in fences(page.read_text()):
        assert language in LANGUAGES, text
        assert language == "python" or not (language == "text" and is_python(text)), text


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_python_is_written_so_that_it_is_not_run(page):
    assert not re.search(
        r"^(?: +```python|```(?:py|python3|pycon)\b)", page.read_text(), re.MULTILINE
    )


def slanted(text: str) -> list[str]:
    """What underscores in plain text would set in italics: formulas that should be in `$`."""
    for quoted in (r"```.*?```", r"\$\$.*?\$\$", r"`[^`]*`", r"\$[^$\n]*\$", r"\]\([^)]*\)"):
        text = re.sub(quoted, "", text, flags=re.DOTALL)
    cells = [cell for line in text.splitlines() for cell in line.split("|")]
    found = [re.search(r"(?<!\w)_(?!\s)[^_]+(?<!\s)_(?!\w)", cell) for cell in cells]
    return [match[0] for match in found if match]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_formula_is_read_as_italics(page):
    assert slanted("(V̄_q)_·n = 1, `a_b_`, $x_{q}$_$y$") == ["_q)_"]
    assert not slanted(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_extras_that_a_page_names_exist(page):
    for extras in re.findall(r"(?:streamgp|\.)\[([\w,]+)\]'", page.read_text()):
        assert set(extras.split(",")) <= EXTRAS


def test_every_promise_has_its_test():
    page = (DOCS / "guarantees.md").read_text()
    shown = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(shown) > 20
    for path, name in shown:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), name


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) < 150
