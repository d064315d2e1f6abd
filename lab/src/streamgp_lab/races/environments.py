"""Python environments of other libraries, with the versions that were compared."""

import subprocess
import sys
import venv
from pathlib import Path

from streamgp.errors import ConfigurationError, problem

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
