"""How the files in `0.2.0` were made: the lives in `lives.py`, led by that version.

They stay as they are, whatever becomes of the library.

    git worktree add ../old ca6adae
    PYTHONPATH=../old/src:. python -m tests.golden.make
"""

import json
import pathlib

import numpy as np

from tests.golden import lives

FOLDER = pathlib.Path(__file__).parent / "0.2.0"


def main() -> None:
    numbers = {
        f"{name}/{what}": found
        for name, life in (lives.EXACT | lives.NEAR).items()
        for what, found in life().seen().items()
    }
    np.savez_compressed(FOLDER / "numbers.npz", **numbers)
    for kind in ("close", "learned"):
        scores = {name: life().nlpd() for name, life in getattr(lives, kind.upper()).items()}
        (FOLDER / f"{kind}.json").write_text(json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main()
