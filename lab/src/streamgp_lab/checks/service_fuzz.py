"""Thousands of requests that the description of the service allows, by schemathesis.

No answer may be a fault of the service, or of a status, a type or a shape that is not described.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from streamgp.client import Client
from streamgp_lab.checks import command
from streamgp_lab.checks.served import Served

_CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance",
)  # fmt: skip


# Most names that are drawn at random belong to nothing: this one belongs to a model and a fleet.
_NAMES = """
[parameters]
"path.name" = "plant"
"path.key" = "plant"
"""


def fuzzed(served: Served, folder: str, examples: int, *more: str) -> bool:
    """Whether all answers to random requests are fine."""
    words = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"),
        *("--checks", ",".join(_CHECKS), "--max-examples", str(examples)),
        *("--exclude-path-regex", "events$", "--request-timeout", "60", "--no-color", *more),
    ]
    return subprocess.run(words, cwd=folder, check=False).returncode == 0


def main(examples: int = 100) -> None:
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder) / "fuzz.db") as served:
        rows = [{"x": float(i), "y": float(i % 7)} for i in range(30)]
        tables = {"channels": {"y": "Gaussian"}, "data": {"inputs": "x"}}
        with Client(served.url) as client:
            client.create("plant", **tables)
            client.model("plant").update(rows)
            httpx.post(f"{served.url}/v1/fleets", json={"name": "plant", **tables})
            client.member("plant", "plant").update(rows)
        (Path(folder) / "schemathesis.toml").write_text(_NAMES)
        named = fuzzed(served, folder, examples, "--exclude-method", "DELETE")
        (Path(folder) / "schemathesis.toml").unlink()
        if not (fuzzed(served, folder, examples) and named):
            sys.exit("There were failures.")


if __name__ == "__main__":
    command("service_fuzz")
