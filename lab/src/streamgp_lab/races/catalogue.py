"""All benchmarks by name."""

from streamgp_lab.races import growth, start
from streamgp_lab.races.benchmark import Benchmark
from streamgp_lab.races.comparisons import batches, channels, dimensions, samples
from streamgp_lab.races.fleet import bench as fleet
from streamgp_lab.races.forecasts import bench as forecasts
from streamgp_lab.races.long import bench as long

BENCHMARKS: dict[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (samples, batches, dimensions, channels, growth, start, long, fleet, forecasts)
}
