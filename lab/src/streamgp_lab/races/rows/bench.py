"""Rows over several inputs: what `streamgp-lab bench rows` measures, one topic after the other."""

from streamgp_lab.races.figures import mean_and_worst
from streamgp_lab.races.rows import (
    absurd,
    channels,
    drift,
    kept,
    outages,
    samples,
    shuffled,
    small,
    traps,
    types,
    wide,
)
from streamgp_lab.races.topics import Topic, Topics

_ALONE = (kept,)  # what earlier revisions cannot do
_MODULES = (
    shuffled, small, kept, drift, channels, types, traps, absurd, outages, samples, wide,
)  # fmt: skip

TOPICS = Topics(
    "rows",
    __package__,
    "Rows over several inputs: tables, drift, channels, traps and cost, beside offline models and "
    "perhaps an earlier revision (--against 09aad08).",
    "Every run has another seed. CPU times of processes on one thread, versions in turns. NLPDs "
    "are per held-out value, in nats.",
    tuple(
        Topic(
            module.__name__.rpartition(".")[2], module.BARS,
            is_repeated=True, is_shared=module not in _ALONE,
        )
        for module in _MODULES
    ),
    is_seeded=True,
    summary=mean_and_worst,
)  # fmt: skip
BENCHMARK = TOPICS.benchmark
