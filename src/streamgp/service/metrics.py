"""Metrics for Prometheus: of requests, and of the models that are in memory."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

import streamgp as sgp
from streamgp.service.cache import Cache
from streamgp.service.lanes import Lanes
from streamgp.service.names import shown

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counters and latencies of one service.

    Args:
        cache: The models in memory, of which gauges tell.
        lanes: The work that waits.
    """

    def __init__(self, cache: Cache, lanes: Lanes):
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        self._requests = Counter(
            "streamgp_requests", "Requests", ["method", "route", "status"], **own
        )
        self._latency = Histogram(
            "streamgp_request_seconds", "Time per request", ["route"], buckets=_SECONDS, **own
        )
        self._learning = Histogram(
            "streamgp_update_seconds", "Time per update, with its commit", buckets=_SECONDS, **own
        )
        self._predicting = Histogram(
            "streamgp_predict_seconds",
            "Time per prediction, with its wait",
            buckets=_SECONDS,
            **own,
        )
        self._observations = Counter("streamgp_observations", "Observations learned", **own)
        self._alarms = Counter("streamgp_changes", "Channels found to have changed", **own)
        self._refused = Counter(
            "streamgp_source_refused", "Messages of a feed that cannot be learned", ["model"], **own
        )
        self.registry.register(_Models(cache, lanes))

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(route).observe(seconds)

    def learned(self, report: sgp.UpdateReport, seconds: float) -> None:
        """Count an update."""
        self._learning.observe(seconds)
        self._observations.inc(sum(report.observations.values()))
        self._alarms.inc(len(report.changed))

    def refused(self, model: str, count: int) -> None:
        """Count messages of a feed that were passed over."""
        self._refused.labels(model).inc(count)

    def predicting(self) -> AbstractContextManager[Any]:
        """Count a prediction, and the time until the block ends: its wait is part of it."""
        return self._predicting.time()

    def text(self) -> bytes:
        """All of it in the format of Prometheus."""
        return generate_latest(self.registry)


class _Models(Collector):
    """Gauges of the models that are in memory: so many, and no more, however many there are."""

    def __init__(self, cache: Cache, lanes: Lanes):
        self._cache, self._lanes = cache, lanes

    def describe(self) -> Iterator[Any]:
        return iter(())

    def collect(self) -> Iterator[Any]:
        models, loads = self._cache.everything(), self._cache.loads
        yield GaugeMetricFamily("streamgp_models_in_memory", "Models in memory", len(models))
        yield GaugeMetricFamily("streamgp_model_loads", "Models loaded from the store", loads)
        yield GaugeMetricFamily("streamgp_waiting", "Batches that wait", self._lanes.total)
        gauges = {name: _gauge(name, about) for name, about in _OF_MODELS.items()}
        by_channel = {name: _gauge(name, about, "channel") for name, about in _OF_CHANNELS.items()}
        for key, live in models:
            name, report = shown(key), live.report
            values = {
                "observations": sum(live.model.observations.values()),
                "seconds_since_last": live.silence,
                "inducing_points": sum(map(len, live.model.inducing_points)),
                "queue": self._lanes.waiting(key),
            }
            if report is not None:
                values["budget_spent"] = float(report["budget_spent"])
                for what in _OF_CHANNELS:
                    for channel, value in report[what].items():
                        number = value["0.95"] if what == "coverage" else value
                        if number is not None:
                            by_channel[what].add_metric([name, channel], number)
            for what, number in values.items():
                gauges[what].add_metric([name], number)
        yield from gauges.values()
        yield from by_channel.values()


_OF_MODELS = {
    "observations": "Observations so far",
    "seconds_since_last": "Seconds since the last observation",
    "inducing_points": "Inducing points of all latent functions",
    "budget_spent": "Whether points had to go for want of room",
    "queue": "Batches that wait for this model",
}
_OF_CHANNELS = {
    "nlpd": "Negative log predictive density before learning, a moving average",
    "coverage": "The share of observations in their 95% intervals, a moving average",
    "surprise": "How far below its usual the last score was, in standard deviations",
}


def _gauge(name: str, about: str, *labels: str) -> Any:
    return GaugeMetricFamily(f"streamgp_model_{name}", about, labels=["model", *labels])
