"""Run the scripts of the tutorials, and keep the pictures that they save in docs/images."""

import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from streamgp_lab.checks import command


def main(pages: str = "docs/tutorials", out: str = "docs/images") -> None:
    """Run all scripts.

    Args:
        pages: The folder of the pages.
        out: The folder for pictures.
    """
    images = Path(out)
    images.mkdir(parents=True, exist_ok=True)
    for page in sorted(Path(pages).glob("*.md")):
        for picture in _pictures(page):
            (images / picture.name).write_bytes(picture.read_bytes())
            Console().print(f"{images / picture.name}")


def _pictures(page: Path) -> list[Path]:
    """The pictures that the script of a page saves, up to where it needs Spark."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    folder = Path(tempfile.mkdtemp())
    script = "".join(itertools.takewhile(lambda each: "streamgp.spark import" not in each, blocks))
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)
    return sorted(folder.glob("*.png"))


if __name__ == "__main__":
    command("pages")
