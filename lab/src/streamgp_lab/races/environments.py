"""Python environments of other libraries, with the versions that were compared."""

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgp.errors import ConfigurationError, problem

REPOSITORY = Path(__file__).parents[4]
OWN = "streamgp"  # the environment that this process runs in
REQUIREMENTS = {
    "gpytorch": ("torch==2.13.0", "gpytorch==1.15.2", "numpy"),
    "gpflow": ("gpflow==2.11.2", "tensorflow==2.21.0"),
    "tinygp": ("tinygp==0.3.1", "jax==0.10.2", "scipy"),
}


def python(name: str, folder: Path) -> Path:
    """The interpreter of an environment. The environment is made if it does not exist."""
    if name == OWN:
        return Path(sys.executable)
    home = folder / name
    interpreter = home / "bin" / "python"
    wanted, ready = "\n".join(REQUIREMENTS[name]), home / "ready"
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(home, with_pip=True, clear=True)
        _install(interpreter, name)
        ready.write_text(wanted)
    return interpreter


def variables(source: Path | None) -> dict[str, str]:
    """What the environment of a process needs so that it imports streamgp from that checkout.

    None stands for this version.
    """
    if source is None:
        return {}
    path = source / "src"
    if not (path / "streamgp").is_dir():
        raise ConfigurationError(
            problem("a checkout of streamgp", str(source), "It should contain src/streamgp.")
        )
    return {"PYTHONPATH": str(path.resolve())}


@contextmanager
def checkout(wanted: str | None) -> Iterator[Path | None]:
    """A folder with another version of streamgp.

    A revision of this repository is checked out into a temporary folder, and compiled if it has a
    compiled part.

    Args:
        wanted: Such a folder, or a revision; None stands for this version.
    """
    if wanted is None or Path(wanted).is_dir():
        yield Path(wanted) if wanted else None
        return
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, wanted.replace("/", "-"))
        _git("worktree", "add", "--detach", str(source), wanted)
        try:
            _compile(source)
            yield source
        finally:
            _git("worktree", "remove", "--force", str(source))


def _git(*words: str) -> None:
    done = subprocess.run(
        ["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ConfigurationError(
            problem("a folder or a revision of the repository", said, "Check its name.")
        )


def _compile(source: Path) -> None:
    builder = source / "build_backend" / "streamgp_build.py"
    if not builder.exists():
        return
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, builder], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ConfigurationError(problem("a revision that compiles", said, "Try `make core`."))


def _install(interpreter: Path, name: str) -> None:
    done = subprocess.run(
        [interpreter, "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ConfigurationError(
            problem(
                f"an environment for {name}", done.stderr.strip().splitlines()[-1],
                "Check the network and try again.",
            )
        )  # fmt: skip
