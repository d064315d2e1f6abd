"""All benchmarks by name."""

from streamgp_lab.races import growth, start
from streamgp_lab.races.benchmark import Benchmark
from streamgp_lab.races.comparisons import batches, channels, dimensions, samples
from streamgp_lab.races.core import bench as core
from streamgp_lab.races.fleet import bench as fleet
from streamgp_lab.races.forecasts import bench as forecasts
from streamgp_lab.races.long import bench as long
from streamgp_lab.races.over_time import bench as over_time
from streamgp_lab.races.record import bench as record
from streamgp_lab.races.rows import bench as rows
from streamgp_lab.races.unseen import bench as unseen

_MODULES = (
    samples, batches, dimensions, channels, growth, start, long, fleet, forecasts, unseen,
    record, core, over_time, rows,
)  # fmt: skip
BENCHMARKS: dict[str, Benchmark] = {module.BENCHMARK.name: module.BENCHMARK for module in _MODULES}
