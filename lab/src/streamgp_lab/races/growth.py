"""Growth: what an update of ours costs as the stream, the points, channels and functions grow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamgp_lab.races.contender import Contender, Entry
from streamgp_lab.races.problem import Rows, rows

_SPAN = 60.0
_REPEATS = 5


@dataclass
class Curve:
    """CPU and wall seconds of an update, and peak memory, against what grows."""

    name: str
    along: str
    fitted_from: float  # smaller sizes are mostly overhead and are left out of the exponent
    sizes: list[int] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def add(self, size: int, took: dict[str, np.ndarray], peak: float) -> None:
        self.sizes.append(size)
        self.cpu.append(float(took["cpu"]))
        self.wall.append(float(took["wall"]))
        self.peak.append(peak)

    @property
    def exponent(self) -> float:
        """The slope of log CPU time against log size."""
        return _slope(self.sizes, self.cpu, self.fitted_from)

    @property
    def memory_exponent(self) -> float:
        return _slope(self.sizes, self.peak, self.fitted_from)


def _slope(sizes: Sequence[int], values: Sequence[float], begin: float) -> float:
    pairs = np.array([(s, v) for s, v in zip(sizes, values, strict=True) if s >= begin])
    return float(np.polyfit(np.log(pairs[:, 0]), np.log(pairs[:, 1]), 1)[0])


def curves(share: float, told: Callable[[str], None]) -> list[Curve]:
    """All of them, each from processes of its own."""
    most = int(10**6 * share)
    counts = [10**power for power in range(2, 7) if 10**power <= most]
    sizes = [m for m in (16, 32, 64, 128, 256, 512, 1024) if m <= max(1024 * share, 128)]
    several = [c for c in (1, 2, 4, 8, 16) if c <= max(16 * share, 4)]
    told("samples seen")
    found = [_seen("samples seen, `update_many`", counts)]
    found.append(_batches_seen("samples seen, updates of 100", [c for c in counts if c <= 10**4]))
    told("inducing points")
    found.append(_points("M, an update that learns", sizes, learns=True))
    found.append(_points("M, an update that does not", sizes, learns=False))
    told("channels and functions")
    found.append(_wide("D channels, Q = 2", "D", [(d, 2) for d in several]))
    found.append(_wide("Q functions, D = 8", "Q", [(8, q) for q in several if q <= 8]))
    return found


def _data(count: int, seed: int) -> Rows:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, _SPAN, count)
    return rows(x, np.sin(x) + 0.3 * generator.normal(size=count))


def _start(settings: dict) -> Contender:
    return Entry("ours", "ours", settings=settings).start(Path())


def _peak(contender: Contender) -> float:
    return float(contender.ask("peak")["peak"])


def _median(contender: Contender, command: str, batches: Sequence[Rows]) -> dict[str, np.ndarray]:
    answers = [contender.ask(command, **batch._asdict()) for batch in batches]
    return {key: np.median([np.mean(a[key]) for a in answers]) for key in ("cpu", "wall")}


def _seen(name: str, counts: list[int]) -> Curve:
    """Samples one by one, once so many have been seen, at 64 points and fixed hyperparameters."""
    curve, seen = Curve(name, "samples seen", 0), 0
    settings = {"kernel": "matern32", "grid": [0, _SPAN, 64], "every": 0, "many": True}
    with _start(settings) as contender:
        contender.ask("learn", **_data(50, 0)._asdict())
        contender.ask("stream", **_data(2048, 1)._asdict())  # compiles
        for count in counts:
            if count > seen:
                contender.ask("stream", **_data(count - seen, count)._asdict())
            batches = [_data(1024, count + k) for k in range(_REPEATS)]
            curve.add(count, _median(contender, "stream", batches), _peak(contender))
            seen = count + 1024 * _REPEATS
    return curve


def _batches_seen(name: str, counts: list[int]) -> Curve:
    """Whole updates of a hundred rows, everything learned, once so many have been seen."""
    curve, seen = Curve(name, "samples seen", 0), 0
    with _start({"budget": 64}) as contender:
        for _ in range(5):
            contender.ask("learn", **_data(100, seen)._asdict())  # compiles
            seen += 100
        for count in counts:
            while seen < count:
                contender.ask("learn", **_data(100, seen)._asdict())
                seen += 100
            batches = [_data(100, seen + k) for k in range(_REPEATS)]
            curve.add(max(count, seen), _median(contender, "learn", batches), _peak(contender))
            seen += 100 * _REPEATS
    return curve


def _points(name: str, sizes: list[int], *, learns: bool) -> Curve:
    """An update of a hundred rows at so many points."""
    curve = Curve(name, "M", 64)
    for size in sizes:
        settings = {"grid": [0, _SPAN, size], "every": int(learns)}
        with _start(settings) as contender:
            for k in range(2):
                contender.ask("learn", **_data(100, k)._asdict())
            batches = [_data(100, 10 + k) for k in range(_REPEATS)]
            curve.add(size, _median(contender, "learn", batches), _peak(contender))
    return curve


def _wide(name: str, along: str, pairs: list[tuple[int, int]]) -> Curve:
    """An update of ten rows a channel with 32 points a function."""
    curve = Curve(name, along, 2)
    for channels, latents in pairs:
        settings = {"channels": channels, "latents": latents, "grid": [0, _SPAN, 32], "every": 1}
        with _start(settings) as contender:
            for k in range(3):
                contender.ask("learn", **_several(channels, k)._asdict())
            batches = [_several(channels, 10 + k) for k in range(_REPEATS)]
            size = channels if along == "D" else latents
            curve.add(size, _median(contender, "learn", batches), _peak(contender))
    return curve


def _several(channels: int, seed: int) -> Rows:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, _SPAN, 10 * channels)
    channel = np.repeat(np.arange(channels), 10)
    y = np.sin(x + channel) + 0.3 * generator.normal(size=len(x))
    return rows(x, y, channel)
