"""Thousands of requests to the service, valid and invalid ones, by schemathesis.

All of its checks are made: no answer may be a fault of the service, or of a status, a type or a
shape that is not described; what is described as invalid is refused, and methods, headers and
tokens are asked for as described. `_CONFIG` says what is left out, and why. Requests are made one
by one, and in chains that make, use and delete models.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from streamgp.client import Client
from streamgp.service import new_token
from streamgp_lab.checks import command
from streamgp_lab.checks.served import Served

_CONFIG = """
# A description says what JSON a body may be. Whether its columns, names and settings fit the model
# is for the service to say, by 422, and whether bytes are a file, an Arrow stream or CSV, too.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "422", "429"]

# A model without data is not ready, which the protocol says by an error.
[[operations]]
include-path-regex = "ready$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404"]

# Events never end.
[[operations]]
include-path-regex = "events$"
enabled = false

# `/v1/fleets/{name}/{key}` is a path of this form, too, so that `Allow` has its methods as well.
[[operations]]
include-path = "/v1/fleets/{name}/observations"
checks.allow_header_conformance.enabled = false
"""

# Most names that are drawn at random belong to nothing: these belong to a model and a fleet.
_NAMES = """
[parameters]
"path.name" = "plant"
"path.key" = "plant"
"path.version" = "1"
"""


def fuzzed(served: Served, secret: str, examples: int, config: str, *more: str) -> bool:
    """Whether all answers to random requests are fine."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "schemathesis.toml").write_text(config)
        words = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {secret}", "--mode", "all"),
            *("--max-examples", str(examples), "--continue-on-failure", "--warnings", "off"),
            *("--request-timeout", "60", "--no-color", *more),
        ]
        return subprocess.run(words, cwd=folder, check=False).returncode == 0


def main(examples: int = 100) -> None:
    secret, token = new_token("fuzz", ["read", "write", "admin"])
    with (
        tempfile.TemporaryDirectory() as folder,
        Served(Path(folder) / "fuzz.db", tokens=(token,)) as served,
    ):
        rows = [{"x": float(i), "y": float(i % 7)} for i in range(30)]
        tables: dict[str, Any] = {"channels": {"y": "Gaussian"}, "data": {"inputs": "x"}}
        with Client(served.url, secret) as client:
            client.create("plant", **tables)
            client.model("plant").update(rows)
            client.create_fleet("plant", **tables)
            client.member("plant", "plant").update(rows)
        named = fuzzed(served, secret, examples, _CONFIG + _NAMES, "--exclude-method", "DELETE")
        anyhow = fuzzed(served, secret, examples, _CONFIG)
    if not (named and anyhow):
        sys.exit("There were failures.")


if __name__ == "__main__":
    command("service_fuzz")
