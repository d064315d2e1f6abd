"""The scripts that the README shows run, each in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import jax

README = Path(__file__).parents[2] / "README.md"


def test_fifteen_lines(tmp_path):
    section = README.read_text().split("## In fifteen lines")[1].split("\n## ")[0]
    first, second = re.findall(r"```python\n(.*?)```", section, re.S)
    assert len([line for line in first.splitlines() if line.strip()]) <= 15
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
    }
    said = []
    for script in (first, second):
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, env=environment, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0].count("log predictive before learning") == 5
    assert "departures_upper" in said[1]
    assert (tmp_path / "jfk.sgp").stat().st_size < 500_000
    assert (tmp_path / "jfk.png").stat().st_size > 20_000
