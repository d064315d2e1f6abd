"""The scripts in the README and in docs/ run, and what the pages refer to exists."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.quick_start import blocks, quick_start

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "lab" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]


# Their blocks are run by tests/spark/test_pages.py, because `make test` goes without Spark.
WITH_SPARK = [ROOT / "docs" / "spark.md", ROOT / "docs" / "tutorials" / "fleet.md"]
# Other files that may be here: what was installed or built.
NOT_PAGES = {"build", "dist", "node_modules", "reproduced"}


def named(page):
    return str(page.relative_to(ROOT))


def needs_spark(block):
    return "streamgp.spark import" in block


def scripts(page):
    """The page's blocks. One that begins with an import is a new script; others continue it.

    From the first block that needs Spark on, blocks are left to tests/spark/test_pages.py.
    """
    found = []
    for block in itertools.takewhile(lambda each: not needs_spark(each), blocks(page.read_text())):
        if block.startswith(("import ", "from ")) or not found:
            found.append(block)
        else:
            found[-1] += block
    return found


def ran(arguments, folder):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_page_of_the_project_is_among_the_pages():
    found = {
        page
        for page in ROOT.glob("**/*.md")
        if not any(
            part.startswith(".") or part in NOT_PAGES for part in page.relative_to(ROOT).parts
        )
    }
    assert found == set(PAGES)


def test_blocks_that_need_spark_are_left_to_its_tests():
    left = [page for page in PAGES if any(map(needs_spark, blocks(page.read_text())))]
    assert left == WITH_SPARK


def test_quick_start_runs_with_the_base_install(tmp_path):
    said = ran([str(ROOT / "tests" / "quick_start.py"), str(README)], tmp_path)
    assert said.count("log predictive before learning") == 5


def test_quick_start_is_all_the_python_of_the_readme_and_short():
    first, *_ = found = quick_start(README)
    assert found == blocks(README.read_text())
    assert len([line for line in first.splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize("page", [p for p in PAGES if p != README and scripts(p)], ids=named)
def test_scripts_of_a_page_run_each_in_a_process_of_its_own(page, tmp_path):
    said = [ran(["-c", script], tmp_path) for script in scripts(page)]
    if page.name == "guide.md":
        assert said[0].count("log predictive before learning") == 5
        assert "departures_upper" in said[1]
        assert (tmp_path / "jfk.sgp").stat().st_size < 500_000
        assert (tmp_path / "jfk.png").stat().st_size > 20_000


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings_that_exist(page):
    for target, _, heading in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]*))?\)", page.read_text()):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles]


def is_superseded(page):
    """Whether a page is a decision of the past, which may name what is gone."""
    return bool(re.search(r"^> Superseded by", page.read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", [p for p in PAGES if not is_superseded(p)], ids=named)
def test_modules_and_folders_that_a_page_names_exist(page):
    lab = ROOT / "lab" / "src"
    places = [ROOT, ROOT / "src", ROOT / "src" / "streamgp", lab, lab / "streamgp_lab"]
    for path in re.findall(r"`([\w./-]+(?:\.py|/))`", page.read_text()):
        assert any((place / path).exists() for place in places), path
