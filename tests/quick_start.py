"""Run the quick start of a README as a new user would: each block of Python in a new process.

    python tests/quick_start.py README.md

It needs only the standard library and streamgp, so it shows whether the base install is enough. The
blocks run one after the other in one empty folder. The exit code is 1 if one of them fails.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# What the quick start must do without.
_OPTIONAL = ("jax", "matplotlib", "pandas", "polars", "tinygp")
_CHECK = f"""
import sys
loaded = [name for name in {_OPTIONAL!r} if name in sys.modules]
sys.exit(f"the quick start loaded {{loaded}}, which the base install lacks" if loaded else 0)
"""


def blocks(text: str) -> list[str]:
    """The blocks of Python in the text."""
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def quick_start(readme: Path) -> list[str]:
    """The blocks of Python in the section "Quick start"."""
    section = re.search(
        r"^## Quick start\n(.*?)(?=^## |\Z)",
        readme.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    found = blocks(section[1]) if section else []
    if not found:
        raise SystemExit(f"{readme} has no Python in a section named 'Quick start'")
    return found


def main(readme: Path) -> int:
    """Run all blocks; 0 if every one succeeds."""
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(quick_start(readme), 1):
            print(f"-- block {number}", flush=True)  # noqa: T201
            done = subprocess.run([sys.executable, "-c", block + _CHECK], cwd=folder, check=False)
            if done.returncode:
                print(f"block {number} of the quick start failed:\n{block}", file=sys.stderr)  # noqa: T201
                return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1])))
