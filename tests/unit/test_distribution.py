"""What is published: the library with its types, and nothing of laboratory, tests or pictures."""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import streamgp as sgp

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_has_the_library_and_its_types_alone(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        described = next(name for name in names if name.endswith("METADATA"))
        metadata = Parser().parsestr(wheel.read(described).decode())
    info = f"streamgp-{sgp.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"streamgp", info}
    assert "streamgp/py.typed" in names
    assert f"{info}/licenses/LICENSE" in names
    assert metadata["Version"] == sgp.__version__
    assert metadata["License-Expression"] == "MIT"
    sources = {f"streamgp/{p.relative_to(ROOT / 'src/streamgp')}" for p in _modules()}
    assert sources <= set(names)


def test_the_source_distribution_has_no_laboratory_tests_or_pages(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as source:
        names = source.getnames()
    tops = {name.split("/")[1] for name in names}
    assert {"src", "pyproject.toml", "LICENSE", "README.md"} <= tops
    assert not tops & {"lab", "tests", "docs"}


def test_one_version_everywhere():
    version = sgp.__version__
    assert f'version = "{version}"' in (ROOT / "lab/pyproject.toml").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()


def _modules():
    return (ROOT / "src/streamgp").rglob("*.py")
