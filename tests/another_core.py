"""Says under which core type of OpenBLAS numbers are rounded otherwise than on this machine.

OpenBLAS has routines for each kind of processor, and chooses at run time, or as the variable
`OPENBLAS_CORETYPE` tells. What is printed is a value of it that every processor can run.
"""

import os
import subprocess
import sys

_OF_ALL = ("PRESCOTT", "ARMV8")  # of x86-64 and of ARM
_ASKED = """
import scipy.linalg
from threadpoolctl import threadpool_info
print(sorted(str(library.get("architecture")) for library in threadpool_info()))
"""


def routines(core: str) -> str:
    """For which processors the routines are that NumPy and SciPy use under a core type."""
    return subprocess.run(
        [sys.executable, "-c", _ASKED],
        env=os.environ | {"OPENBLAS_CORETYPE": core},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


if __name__ == "__main__":
    own = routines("")
    others = [core for core in _OF_ALL if routines(core) != own]
    if not others:
        sys.exit("This BLAS has no other routines to choose.")
    sys.stdout.write(others[0])
