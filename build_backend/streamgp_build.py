"""How streamgp is built: scikit-build-core, with two additions (PEP 517, PEP 660).

- Without a C++ compiler, the build fetches one: Zig's, which comes as a Python package.
- An editable installation is a path to src/, and the compiled module lies there with the sources.
  scikit-build-core would install an import hook, which ignores PYTHONPATH.

Run as a program, it compiles the module into src/ and installs nothing: `make core`.
"""

import base64
import contextlib
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scikit_build_core import build as skbuild
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, Any] | None
_SOURCES = Path(__file__).resolve().parents[1] / "src"
_NAMES = ("c++", "g++", "clang++")
_FALLBACK = ["ziglang>=0.15", "ninja>=1.11"]
# The oldest C library that Python packages in wheels support; modules for it run on newer ones too.
_GLIBC = "2.17"
# Zig compiles its standard library once for each way of optimising, so CMake's trials get the same
# one as the module. Python's headers redefine what its C library defines.
_ZIG_FLAGS = "-O3 -s -Wno-macro-redefined"
_PROGRAM = "#include <vector>\nint size() { return int(std::vector<int>(1).size()); }\n"


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a build needs here, with a compiler if there is none."""
    needed = skbuild.get_requires_for_build_wheel(config_settings)
    return needed if has_compiler() else [*needed, *_FALLBACK]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """What an editable installation needs: a wheel is built for it."""
    return get_requires_for_build_wheel(config_settings)


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Compile and make the wheel; its name."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        raise SystemExit(
            f"streamgp has a part in C++, which needs the headers of Python, but {header} does not"
            " exist. Install them: they are in python3-dev on Debian and Ubuntu, in python3-devel"
            " on Fedora."
        )
    with contextlib.nullcontext() if has_compiler() else _zig():
        return skbuild.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Compile the module into src/ and make a wheel that has the path to it; its name."""
    with tempfile.TemporaryDirectory() as folder:
        name = build_wheel(folder, config_settings)
        with zipfile.ZipFile(Path(folder, name)) as whole:
            _place(whole)
            files = {n: whole.read(n) for n in whole.namelist() if ".dist-info/" in n}
    record = next(file for file in files if file.endswith("/RECORD"))
    del files[record]
    files["streamgp.pth"] = f"{_SOURCES}\n".encode()
    lines = [f"{file},{_digest(data)},{len(data)}\n" for file, data in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    with zipfile.ZipFile(Path(wheel_directory, name), "w") as wheel:
        for file, data in files.items():
            wheel.writestr(file, data)
    return name


def has_compiler() -> bool:
    """Whether a C++ compiler is here: one named by CXX, or one that compiles C++17 and links.

    A program that does not work, such as macOS's c++ without its tools, does not count.
    """
    if os.environ.get("CXX"):
        return True
    if sys.platform == "win32":
        return shutil.which("cl") is not None or _visual_studio()
    return any(_compiles(name) for name in _NAMES if shutil.which(name))


def _compiles(compiler: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "try.cpp")
        source.write_text(_PROGRAM)
        command = [compiler, "-std=c++17", "-shared", "-fPIC", str(source), "-o", f"{source}.so"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _visual_studio() -> bool:
    """Whether Visual Studio has its C++ tools; CMake finds them by itself."""
    folder = os.environ.get("PROGRAMFILES(X86)", r"C:\Program Files (x86)")
    finder = Path(folder, "Microsoft Visual Studio", "Installer", "vswhere.exe")
    tools = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
    asked = [str(finder), "-products", "*", "-requires", tools, "-property", "installationPath"]
    return finder.exists() and bool(subprocess.run(asked, capture_output=True, check=False).stdout)


@contextlib.contextmanager
def _zig() -> Iterator[None]:
    """Let CMake use Zig's compiler."""
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise SystemExit(
            "streamgp has a part in C++. No C++ compiler was found (CXX is not set, and none of"
            f" {', '.join(_NAMES)} works), and the package ziglang, which has one, is not"
            " installed. Install a compiler, for example g++, or build with isolation, as pip does"
            " by itself."
        )
    program = Path(found.origin).with_name("zig.exe" if os.name == "nt" else "zig")
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        tools = {
            "CXX": _script(folder, "c++", program, f"c++ -target {_target()} {_ZIG_FLAGS}"),
            "AR": _script(folder, "ar", program, "ar"),
            "RANLIB": _script(folder, "ranlib", program, "ranlib"),
        }
        archive = [f"-DCMAKE_{name}={tools[name]}" for name in ("AR", "RANLIB")]
        os.environ |= {
            "CXX": tools["CXX"],
            "CMAKE_ARGS": f"{before.get('CMAKE_ARGS', '')} {shlex.join(archive)}",
            "CMAKE_GENERATOR": "Ninja",
        }
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _target() -> str:
    """What Zig compiles for: any processor of this kind, and old C libraries too."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if sys.platform == "win32":
        return f"{machine}-windows-gnu"
    if sys.platform == "darwin":
        return f"{machine}-macos"
    if "musl" in (sysconfig.get_config_var("SOABI") or ""):
        return f"{machine}-linux-musl"
    return f"{machine}-linux-gnu.{_GLIBC}"


def _script(folder: str, name: str, program: Path, arguments: str) -> str:
    """A program that CMake can call by a path alone; the path."""
    if os.name == "nt":
        script = Path(folder, f"{name}.cmd")
        script.write_text(f'@"{program}" {arguments} %*\n')
    else:
        script = Path(folder, name)
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} {arguments} "$@"\n')
        script.chmod(0o755)
    return script.as_posix()


def _place(wheel: zipfile.ZipFile) -> None:
    """Put the compiled module of a wheel beside the sources.

    It is renamed into its place: a process that has the old one open keeps it.
    """
    name = next(n for n in wheel.namelist() if n.startswith("streamgp/_core.") and ".py" not in n)
    new = _SOURCES / f"{name}.new"
    new.write_bytes(wheel.read(name))
    new.replace(_SOURCES / name)


def _digest(data: bytes) -> str:
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={encoded.decode()}"


if __name__ == "__main__":
    os.chdir(_SOURCES.parent)
    with tempfile.TemporaryDirectory() as folder:
        made = build_wheel(folder, {"build-dir": "build/core/{wheel_tag}"})
        with zipfile.ZipFile(Path(folder, made)) as whole:
            _place(whole)
