"""Thousands of requests that the description of the service allows, by schemathesis.

No answer may be a fault of the service, or of a status, a type or a shape that is not described.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from streamgp.client import Client
from streamgp_lab.checks import command
from streamgp_lab.checks.served import Served

_CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance",
)  # fmt: skip


def main(examples: int = 100) -> None:
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder) / "fuzz.db") as served:
        with Client(served.url) as client:
            client.create("plant", {"y": "Gaussian"}, data={"inputs": "x"})
            client.model("plant").update([{"x": float(i), "y": float(i % 7)} for i in range(30)])
        words = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"),
            *("--checks", ",".join(_CHECKS), "--max-examples", str(examples)),
            *("--exclude-path-regex", "events$", "--request-timeout", "60", "--no-color"),
        ]
        done = subprocess.run(words, cwd=folder, check=False)
    if done.returncode:
        sys.exit("There were failures.")


if __name__ == "__main__":
    command("service_fuzz")
