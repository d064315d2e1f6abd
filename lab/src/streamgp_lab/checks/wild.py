"""Stream the random data of soak once into a model of each likelihood.

It is the short form of `soak`: one life per likelihood, without mixtures.
"""

import sys

from streamgp_lab.checks import command, soak
from streamgp_lab.checks.worlds import FAMILIES
from streamgp_lab.progress import bar
from streamgp_lab.reporting.tables import Table


def main(seed: int = 0) -> None:
    """Print a table, and exit with status 1 if there were failures."""
    rows, failed = [], 0
    with bar("wild", len(FAMILIES)) as line:
        for kind, (name, likelihood) in enumerate(FAMILIES.items()):
            line.show(name)
            made, seconds, failures = soak.run(seed, only=(kind, 0), seconds=0)
            failed += len(failures)
            result = "failed" if failures else "passed"
            rows.append([f"{name}: {type(likelihood).__name__}", str(made), result])
            rows[-1].append(f"{seconds:.0f}")
            line.advance()
    print(Table("wild", ["likelihood", "updates", "result", "seconds"], rows).markdown())
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    command("wild")
