"""What is published: the library with its types, and nothing of laboratory, tests or pictures."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import streamgp as sgp

ROOT = Path(__file__).parents[2]
_MOST_BYTES = 1_000_000  # of a wheel, with the compiled core


def _is_compiled(name):
    endings = importlib.machinery.EXTENSION_SUFFIXES
    return name in {f"streamgp/_core{ending}" for ending in endings}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(folder)]
    if _can_compile():
        command.append("--no-isolation")
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
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
    assert f"{info}/licenses/core/licences/nanobind.txt" in names  # a part of the compiled module
    assert metadata["Version"] == sgp.__version__
    assert metadata["License-Expression"] == "MIT"
    sources = {f"streamgp/{p.relative_to(ROOT / 'src/streamgp').as_posix()}" for p in _sources()}
    inside = {name for name in names if name.startswith("streamgp/")}
    compiled = {name for name in inside if _is_compiled(name)}
    assert len(compiled) == 1
    assert inside == sources | compiled


def test_the_wheel_is_small(built):
    assert next(built.glob("*.whl")).stat().st_size <= _MOST_BYTES


def test_the_source_distribution_has_no_laboratory_tests_or_pages(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as source:
        names = source.getnames()
    tops = {name.split("/")[1] for name in names}
    assert {"src", "core", "build_backend", "CMakeLists.txt"} <= tops
    assert {"pyproject.toml", "LICENSE", "README.md"} <= tops
    assert not tops & {"lab", "tests", "docs"}
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc"))]


def test_one_version_everywhere():
    version = sgp.__version__
    assert f'version = "{version}"' in (ROOT / "lab/pyproject.toml").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_spark_has_a_pandas_that_it_supports():
    """PySpark 4.1 asks for 2.2, and warns of 3."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = map(Requirement, project["optional-dependencies"]["spark"])
    asked = {found.name: found.specifier for found in extra}
    supported = ["2.2.0", "2.3.3"]
    assert [*asked["pandas"].filter(["2.1.4", *supported, "3.0.0", "3.1.0"])] == supported


def _sources():
    """The files of the package: modules, types, and the page of the service."""
    files = (path for path in (ROOT / "src/streamgp").rglob("*") if path.is_file())
    return [path for path in files if path.suffix not in {".pyc", ".so", ".pyd"}]


def _can_compile():
    """Whether a build works without fetching a compiler."""
    path = ROOT / "build_backend/streamgp_build.py"
    spec = importlib.util.spec_from_file_location("streamgp_build", path)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend.has_compiler()
