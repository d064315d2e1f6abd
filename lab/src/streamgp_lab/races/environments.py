"""Python environments of other libraries, with the versions that were compared."""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamgp.errors import ConfigurationError, problem

REPOSITORY = Path(__file__).parents[4]
_LABORATORY = Path(__file__).parents[2]
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

    The laboratory stays this one. None stands for this version.
    """
    if source is None:
        return {}
    path = source / "src"
    if not (path / "streamgp").is_dir():
        raise ConfigurationError(
            problem("a checkout of streamgp", str(source), "It should contain src/streamgp.")
        )
    return {"PYTHONPATH": os.pathsep.join([str(path.resolve()), str(_LABORATORY)])}


def answer(words: Sequence[str], source: Path | None, wanted: str, advice: str) -> Any:
    """What a program in a process of its own, on one thread, prints as JSON.

    Args:
        words: The program and its arguments, as Python takes them.
        source: The checkout of streamgp that it imports; None stands for this version.
        wanted: What such a checkout should be, for the error if the program fails.
        advice: What to do about it.

    Raises:
        ConfigurationError: If the program fails.
    """
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False,
        env={**os.environ, **one, **variables(source)},
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ConfigurationError(problem(wanted, said, advice))
    return json.loads(done.stdout)


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
